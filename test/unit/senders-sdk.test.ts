/** Deliveries that the senders' own libraries have signed. */
import * as fc from 'fast-check';
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { sign as signGithub } from '@octokit/webhooks-methods';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { Stripe } from 'stripe';
import { Webhook as SvixWebhook } from 'svix';
import { getExpectedTwilioSignature } from 'twilio/lib/webhooks/webhooks.js';
import { verify } from '../../src/core/verify.ts';
import { senders } from '../../src/senders/index.ts';
import { keysOf, received, type Headers } from '../support/vectors.ts';

const now = 1_767_225_600;
const url = 'https://hooks.example.com/hook?a=1';
const whsec = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

/** JSON of any kind, as text that survives the libraries: they sign strings, not bytes. */
const payload = fc.json({ stringUnit: 'grapheme' });
const secret = fc.stringMatching(/^[ -~]{1,40}$/).filter((text) => text.trim() === text && text !== '');
const id = fc.stringMatching(/^msg_[A-Za-z0-9]{1,24}$/);

test('Stripe: what stripe-node signs is accepted', () => {
  const { webhooks } = new Stripe('sk_test_none');
  fc.assert(
    fc.property(payload, secret, (body, key) => {
      const signature = webhooks.generateTestHeaderString({ payload: body, secret: key, timestamp: now });
      accepts('stripe', [key], { 'Stripe-Signature': signature }, body);
    }),
  );
});

test('GitHub: what @octokit/webhooks-methods signs is accepted', async () => {
  await fc.assert(
    fc.asyncProperty(payload, secret, async (body, key) => {
      accepts('github', [key], { 'X-Hub-Signature-256': await signGithub(key, body) }, body);
    }),
  );
});

test('Standard Webhooks, GitLab: what standardwebhooks signs is accepted', () => {
  fc.assert(
    fc.property(payload, id, (body, message) => {
      const signature = new StandardWebhook(whsec).sign(message, new Date(now * 1000), body);
      const headers = { 'webhook-id': message, 'webhook-timestamp': String(now), 'webhook-signature': signature };
      accepts('standard-webhooks', [whsec], headers, body);
      accepts('gitlab-signing-token', [whsec], headers, body);
      accepts('svix', [whsec], headers, body);
    }),
  );
});

test('Svix, Clerk: what svix signs is accepted', () => {
  fc.assert(
    fc.property(payload, id, (body, message) => {
      const signature = new SvixWebhook(whsec).sign(message, new Date(now * 1000), body);
      const headers = { 'svix-id': message, 'svix-timestamp': String(now), 'svix-signature': signature };
      for (const name of ['svix', 'clerk']) accepts(name, [whsec], headers, body);
    }),
  );
});

test('Twilio: what twilio-node signs is accepted, forms and JSON, by auth token and by shared key', () => {
  // Libraries differ in how they sort what lies above the surrogates.
  const text = fc.string({ unit: 'grapheme', maxLength: 12 }).filter((one) => !/[\ue000-\uffff]/.test(one));
  const parameters = fc.dictionary(
    fc.stringMatching(/^[A-Za-z]{1,8}$/),
    fc.oneof(text, fc.array(text, { minLength: 1, maxLength: 3 })),
  );
  fc.assert(
    fc.property(parameters, secret, fc.boolean(), (params, key, shared) => {
      const algorithm = shared ? 'HMAC_SHA256' : 'HMAC_SHA1';
      const form = new URLSearchParams();
      for (const [name, value] of Object.entries(params)) for (const one of [value].flat()) form.append(name, one);
      const signature = getExpectedTwilioSignature(key, url, params, algorithm);
      const settings = shared ? { 'X-Twilio-Webhooks-Signature-Settings': `key=k,algorithm=${algorithm}` } : {};
      accepts('twilio', [key], { 'X-Twilio-Signature': signature, ...settings }, form.toString());
    }),
  );
  fc.assert(
    fc.property(payload, secret, (body, key) => {
      const hashed = `${url}&bodySHA256=${createHash('sha256').update(body).digest('hex')}`;
      const signature = getExpectedTwilioSignature(key, hashed, {});
      accepts('twilio', [key], { 'X-Twilio-Signature': signature }, body, hashed);
      refuses('twilio', [key], { 'X-Twilio-Signature': signature }, `${body} `, hashed);
      // Without the hash in the URL nothing would cover the body.
      refuses('twilio', [key], { 'X-Twilio-Signature': getExpectedTwilioSignature(key, url, {}) }, body);
    }),
  );
});

function accepts(name: string, secrets: readonly string[], headers: Headers, body: string, at = url): void {
  assert.equal(verdict(name, secrets, headers, body, at), 'verified');
  refuses(name, secrets, headers, `${body}0`, at);
}

function refuses(name: string, secrets: readonly string[], headers: Headers, body: string, at = url): void {
  assert.equal(verdict(name, secrets, headers, body, at), 'bad_signature');
}

function verdict(name: string, secrets: readonly string[], headers: Headers, body: string, at: string): string {
  const sender = senders.get(name)!;
  const result = verify(sender.signature, keysOf(sender, secrets)!, received(headers, body), now * 1000, { url: at });
  return 'kind' in result ? result.reason : 'verified';
}
