import { verify, X509Certificate } from 'node:crypto';
import { fromBase64, utf8Text } from '../core/bytes.ts';
import type { Received, Rejected } from '../core/delivery.ts';
import { plain, type Handshake } from '../core/handshake.ts';
import { jsonLookup } from '../core/json-value.ts';
import type { KeyRequest } from '../core/ports.ts';
import type { Sender } from '../core/sender.ts';
import { rejected, sharedSecrets, type Checked, type Circumstances } from '../core/signature-items.ts';
import { hour, inJson, minute, namedBy, second } from './rules.ts';

const host = String.raw`https:\/\/sns\.[a-z0-9-]{3,}\.amazonaws\.com(\.cn)?`;
const certificateUrl = new RegExp(String.raw`^${host}\/[A-Za-z0-9_-]+\.pem$`);
const subscribeUrl = new RegExp(String.raw`^${host}\/\?[A-Za-z0-9_%&=:.~+-]*$`);

const notification = ['Message', 'MessageId', 'Subject', 'Timestamp', 'TopicArn', 'Type'];
const control = ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type'];
const hashes: Record<string, string> = { 1: 'sha1', 2: 'sha256' };

/** https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html */
function check({ body }: Received, { secrets, published = '' }: Circumstances): Checked {
  // Bytes that are no UTF-8 would read alike, and differ.
  if (utf8Text(body) === undefined) return rejected('bad_signature', 'the body is not UTF-8');
  const text = fields(body);
  const hash = hashes[text('SignatureVersion') ?? ''];
  const signature = fromBase64(text('Signature') ?? '');
  const topic = text('TopicArn');
  const names = text('Type') === 'Notification' ? notification : control;
  const missing = names.filter((name) => text(name) === undefined);
  if (hash === undefined || signature === undefined || topic === undefined || !['', 'Subject'].includes(missing.join()))
    return rejected('missing_signature', 'the body is not a signed SNS message');
  const lines = names.filter((name) => !missing.includes(name)).map((name) => `${name}\n${text(name)}\n`);
  if (!signedBy(published, hash, Buffer.from(lines.join('')), signature))
    return rejected('bad_signature', 'the signature in the body does not match');
  const key = sharedSecrets(secrets).find((secret) => secret.equals(Buffer.from(topic)));
  if (key === undefined) return rejected('bad_signature', 'the topic is none of this route');
  return { kind: 'matched', key, signedId: text('MessageId') };
}

function signedBy(pem: string, hash: string, message: Buffer, signature: Buffer): boolean {
  try {
    return verify(hash, message, new X509Certificate(pem).publicKey, signature);
  } catch {
    return false;
  }
}

const fields = (body: Buffer): ((name: string) => string | undefined) => {
  const json = jsonLookup(body);
  return (name) => {
    const value = json.value([name]);
    return value?.kind === 'string' ? value.text : undefined;
  };
};

function published({ body }: Received): KeyRequest | Rejected {
  const url = fields(body)('SigningCertURL');
  if (url === undefined) return rejected('missing_signature', 'the body is not a signed SNS message');
  return certificateUrl.test(url) ? { url } : rejected('bad_signature', 'the certificate is not at amazonaws.com');
}

const handshake: Handshake = {
  when: 'signed',
  methods: [],
  title: 'the signed SubscriptionConfirmation of a topic of this route; its SubscribeURL is read once',
  answer({ body }) {
    const text = fields(body);
    if (text('Type') !== 'SubscriptionConfirmation') return undefined;
    const visit = text('SubscribeURL') ?? '';
    return subscribeUrl.test(visit)
      ? { ...plain('confirmed'), visit }
      : plain('the SubscribeURL is not at amazonaws.com', 400);
  },
};

export const awsSns: Sender = {
  name: 'aws-sns',
  title: 'Amazon SNS',
  signature: {
    scheme: 'own',
    title: 'RSA with SHA-1 (version 1) or SHA-256 (version 2), in the body, by a certificate from amazonaws.com',
    usesUrl: false,
    check,
    published,
  },
  secret:
    'the ARN of a topic whose messages are taken (`arn:aws:sns:…`). It is no secret, but the only thing that tells your topics from those of every other account, which Amazon signs as well',
  decodeSecret: (text) =>
    /^arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_.-]+$/.test(text)
      ? Buffer.from(text)
      : 'is not the ARN of a topic, arn:aws:sns:<region>:<account>:<topic>',
  identity: namedBy(inJson('/MessageId'), inJson('/TopicArn')),
  notCovered: ['`MessageAttributes`, `UnsubscribeURL` and the headers'],
  handshake,
  successStatus: 200,
  timeLimitMs: 15 * second,
  // At most; by default three retries, 20 seconds apart.
  retryHorizonMs: hour,
  lastRetryMs: minute,
  setup: [
    'Configure the route with the ARN of the topic, and let the gateway reach amazonaws.com over https.',
    'Create the subscription: protocol HTTPS, the URL, raw message delivery off. The gateway confirms it.',
    'Set the topic’s SignatureVersion to 2, and a delivery policy that retries for as long as your application may be away.',
  ],
  cautions: [
    'By default SNS gives up a minute after the first failure: set a delivery policy (an hour at most) and a dead-letter queue.',
    'Raw message delivery is not signed, and is refused.',
    'An UnsubscribeConfirmation goes to the application like a message.',
  ],
  unverified: [
    'That any status from 400 to 499 but 429 is final.',
    'The time limit of 15 seconds.',
    'That a retry keeps its MessageId.',
  ],
  sources: [
    'https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html',
    'https://docs.aws.amazon.com/sns/latest/dg/sns-message-delivery-retries.html',
    'https://github.com/aws/aws-js-sns-message-validator',
  ],
};
