/**
 * What stands before a delivery's identity: a content coding under which the sender signed, handshakes that no
 * signature covers, the key where the sender publishes it, the signature, and handshakes that are signed like
 * any delivery.
 */
import { decoded } from './content.ts';
import type { Outcome, Received, Rejected, Verified } from './delivery.ts';
import type { Greeting } from './handshake.ts';
import type { Clock, Events, SenderKeys } from './ports.ts';
import { publicUrlOf } from './public-url.ts';
import type { Route } from './route.ts';
import { rejected } from './signature-items.ts';
import { verify } from './verify.ts';

interface Witnesses {
  readonly clock: Pick<Clock, 'wall'>;
  readonly keys: SenderKeys;
  readonly events: Pick<Events, 'warn' | 'secretUsed'>;
}

/** An outcome means that the delivery goes no further. Nothing has been claimed. */
export async function authenticate(gate: Witnesses, route: Route, came: Received): Promise<Verified | Outcome> {
  const received = route.signatureOver === 'decoded' ? await decoded(came) : came;
  if ('kind' in received) return received;
  const { handshake, handshakeToken: token } = route;
  if (handshake?.when === 'open') {
    const greeting = handshake.answer(received, { secrets: route.secrets, token });
    if (greeting) return await greet(gate, route, greeting);
  }
  if (handshake?.methods.some((method) => method === received.method))
    return rejected('bad_request', 'nothing that the sender asks in this way');

  const published = await publishedKey(gate.keys, route, received);
  if (typeof published === 'object') return published;
  const url = publicUrlOf(route, received.target);
  const verified = verify(route.signature, route.secrets, received, gate.clock.wall(), { url, published });
  if ('kind' in verified) return verified;
  const secret = route.secretNames?.[route.secrets.findIndex((key) => key === verified.signedBy)];
  if (secret !== undefined) gate.events.secretUsed(route.name, secret);

  if (handshake?.when === 'signed') {
    const secrets = verified.signedBy === undefined ? [] : [verified.signedBy];
    const greeting = handshake.answer(verified, { secrets, token });
    if (greeting) return await greet(gate, route, greeting);
  }
  return verified;
}

/** The document that the rule needs to judge this delivery; undefined when it needs none. */
async function publishedKey(
  keys: SenderKeys,
  { signature, secrets }: Route,
  received: Received,
): Promise<string | undefined | Rejected | { readonly kind: 'unavailable' }> {
  const request = signature.scheme === 'own' ? signature.published?.(received, secrets) : undefined;
  if (request === undefined || 'kind' in request) return request;
  return (await keys.get(request)) ?? { kind: 'unavailable' };
}

async function greet(gate: Witnesses, route: Route, greeting: Greeting): Promise<Outcome> {
  const { answer, visit, tell, reveal } = greeting;
  if (tell !== undefined) {
    const shown = reveal !== undefined && route.handshakeReveal ? { shown: reveal } : {};
    gate.events.warn(tell, { route: route.name, ...shown });
  }
  if (visit !== undefined && !(await gate.keys.visit(visit))) return { kind: 'unavailable' };
  return { kind: 'handshake', answer };
}
