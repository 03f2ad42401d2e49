/** Keys that senders publish: whose addresses are asked, and what becomes of a delivery whose key cannot be had. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { Received } from '../../src/core/delivery.ts';
import type { OwnRule } from '../../src/core/verify.ts';
import { senders } from '../../src/senders/index.ts';
import { routeOf, startGate } from '../support/gate.ts';
import { deliveryOf, keysOf, secretTexts, vectors, type VerifyVector } from '../support/vectors.ts';

const vector = (id: string) => vectors.find((one) => one.id === id) as VerifyVector;
const now = 1_767_225_600;

function asked(name: string, delivery: Received, secrets: readonly string[] = []) {
  const sender = senders.get(name)!;
  const request = (sender.signature as OwnRule).published!(delivery, keysOf(sender, secrets)!);
  return request === undefined ? undefined : 'kind' in request ? request.reason : request;
}

suite('addresses', () => {
  test('PayPal: only certificates of paypal.com, by https, at their own path', () => {
    const delivery = deliveryOf(vector('paypal-0799'));
    const at = (url: string) => {
      const headers = delivery.headers.with(delivery.headers.indexOf('PAYPAL-CERT-URL') + 1, url);
      const request = asked('paypal', { ...delivery, headers });
      return typeof request === 'object' ? request.url : request;
    };
    const right = [
      'https://api.paypal.com/v1/notifications/certs/CERT-360caa42-fca2a594-1d93a270',
      'https://api.sandbox.paypal.com/v1/notifications/certs/CERT-1',
    ];
    for (const url of right) assert.equal(at(url), url);
    const wrong = [
      'http://api.paypal.com/v1/notifications/certs/CERT-1',
      'https://api.paypal.com.evil.example/v1/notifications/certs/CERT-1',
      'https://evilpaypal.com/v1/notifications/certs/CERT-1',
      'https://api.paypal.com@evil.example/v1/notifications/certs/CERT-1',
      'https://api.paypal.com:8443/v1/notifications/certs/CERT-1',
      'https://api.paypal.com/v1/notifications/certs/../../x',
      'https://api.paypal.com/v1/notifications/certs/CERT-1?x',
      'https://api.paypal.com/v1/notifications/certs/CERT-1\n',
      'https://api.paypal.com/redirect?to=https://evil.example',
      'file:///etc/passwd',
    ];
    for (const url of wrong.map((url) => (url.endsWith('\n') ? `${url}x` : url)))
      assert.equal(at(url), 'bad_signature', url);
    assert.equal(at(''), 'missing_signature');
  });

  test('SNS: only certificates of sns.<region>.amazonaws.com, by https, ending in .pem', () => {
    const at = (url: unknown) => {
      const request = asked('aws-sns', {
        ...deliveryOf(vector('aws-sns-0815')),
        body: Buffer.from(JSON.stringify({ SigningCertURL: url })),
      });
      return typeof request === 'object' ? request.url : request;
    };
    for (const host of ['sns.eu-central-1.amazonaws.com', 'sns.cn-north-1.amazonaws.com.cn']) {
      const url = `https://${host}/SimpleNotificationService-f3ecfb7224c7233fe7bb5f59f96de52f.pem`;
      assert.equal(at(url), url);
    }
    const wrong = [
      'http://sns.us-west-2.amazonaws.com/x.pem',
      'https://sns.us-west-2.amazonaws.com/x.pem?',
      'https://sns.us-west-2.amazonaws.com/a/x.pem',
      'https://sns.us-west-2.amazonaws.com.evil.example/x.pem',
      'https://sns.us-west-2.amazonaws.com@evil.example/x.pem',
      'https://sns.us-west-2.amazonaws.com:444/x.pem',
      'https://bucket.s3.amazonaws.com/x.pem',
      'https://sns.us.west.amazonaws.com/x.pem',
      'https://evil.example/sns.us-west-2.amazonaws.com/x.pem',
      'https://sns.us-west-2.amazonaws.com/x.txt',
      '',
    ];
    for (const url of wrong) assert.equal(at(url), 'bad_signature', url);
    assert.equal(at(undefined), 'missing_signature');
  });

  test('Plaid: a configured key is not asked for; otherwise Plaid is, with the credentials of the route', () => {
    const signed = deliveryOf(vector('plaid-0825'));
    const kid = 'bfbd5111-8e33-4643-8ced-b2e642a72f3c';
    assert.equal(asked('plaid', signed, secretTexts(vector('plaid-0825'))), undefined);
    const question = { client_id: '0123456789abcdef', secret: 's3', key_id: kid };
    assert.deepEqual(asked('plaid', signed, ['0123456789abcdef:s3']), {
      ...{ url: 'https://production.plaid.com/webhook_verification_key/get', question },
    });
    assert.deepEqual(asked('plaid', signed, ['sandbox:0123456789abcdef:s3']), {
      ...{ url: 'https://sandbox.plaid.com/webhook_verification_key/get', question },
    });
    const otherKey = JSON.stringify({ ...vector('plaid-0825').jwk, kid: 'another' });
    assert.equal(asked('plaid', signed, [otherKey]), 'bad_signature', 'without credentials nobody is asked');
    for (const id of ['plaid-0829', 'plaid-0830'])
      assert.equal(
        asked('plaid', deliveryOf(vector(id)), ['0123456789abcdef:s3']),
        'bad_signature',
        'nor for an algorithm that is not Plaid’s',
      );
  });
});

suite('on a route', () => {
  for (const id of ['paypal-0799', 'aws-sns-0815']) {
    test(`${id}: without the certificate the sender is told to come again, with it the delivery is handled`, async () => {
      const one = vector(id);
      const gate = startGate(now);
      const route = routeOf(senders.get(one.provider)!, secretTexts(one));
      assert.equal((await gate.handle(route, deliveryOf(one))).kind, 'unavailable');
      assert.deepEqual([gate.claims.calls, gate.upstream.requests], [[], []]);
      const [{ url }] = gate.keys.asked as [{ url: string }];
      for (const garbage of ['', 'not a certificate', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----']) {
        gate.keys.published.set(url, garbage);
        assert.equal((await gate.handle(route, deliveryOf(one))).kind, 'rejected', garbage);
      }
      gate.keys.published.set(url, one.cert_pem!);
      assert.equal((await gate.handle(route, deliveryOf(one))).kind, 'delivered');
      assert.equal((await gate.handle(route, deliveryOf(one))).kind, 'duplicate');
    });
  }

  test('a delivery with a foreign address is refused before anybody is asked', async () => {
    for (const id of ['paypal-0810', 'paypal-0811', 'paypal-0812', 'aws-sns-0821']) {
      const one = vector(id);
      const gate = startGate(now);
      const outcome = await gate.handle(routeOf(senders.get(one.provider)!, secretTexts(one)), deliveryOf(one));
      assert.equal(outcome.kind, 'rejected', id);
      assert.deepEqual(gate.keys.asked, []);
    }
  });

  test('Plaid: a key as Plaid answers it is used, one that was given up is not', async () => {
    const one = vector('plaid-0825');
    const handled = async (change: Record<string, unknown>) => {
      const gate = startGate(now);
      gate.keys.published.set(
        'https://production.plaid.com/webhook_verification_key/get',
        JSON.stringify({ key: { ...one.jwk, ...change }, request_id: 'r' }),
      );
      return (await gate.handle(routeOf(senders.get('plaid')!, ['0123456789abcdef:s3']), deliveryOf(one))).kind;
    };
    assert.equal(await handled({}), 'delivered');
    assert.equal(await handled({ expired_at: 1_767_225_000 }), 'rejected');
    assert.equal(await handled({ kid: 'another' }), 'rejected');
  });

  test('senders whose key is a secret of the route ask nobody', async () => {
    const gate = startGate(now);
    const one = vector('github-0791');
    await gate.handle(routeOf(senders.get('github')!, secretTexts(one)), deliveryOf(one));
    assert.deepEqual(gate.keys.asked, []);
  });
});
