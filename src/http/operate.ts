/**
 * Explain and forget on the admin port, for whoever has its token. Reading needs it too: it tells what became of an event.
 *
 *     GET  /-/explain/<route>?id=<id>&id=<id>…
 *     POST /-/forget/<route>?id=<id>…&force=true        both: ?key=<Hookonce-Key> instead of ids
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { DeadLetters } from '../core/dead-letters.ts';
import { findEvent, type GivenEvent } from '../core/given-ids.ts';
import { forgettingInWords, summaryInWords } from '../core/in-words.ts';
import { leadsTo } from '../core/leads.ts';
import type { Forgetting, Operator } from '../core/operator.ts';
import type { Events } from '../core/ports.ts';
import type { RecentDelivery } from '../core/recent-deliveries.ts';
import type { Route } from '../core/route.ts';
import { deadLetters } from './dead-letters.ts';

export interface OperateOptions {
  readonly service: string;
  /** As they are configured now. */
  routes(): readonly Route[];
  /** Undefined: nobody may. */
  token(): string | undefined;
  readonly operator: Operator;
  /** Undefined: there is no queue. */
  readonly letters?: DeadLetters | undefined;
  /** Of an event, those that this gateway has answered of late, by the event's key. */
  recent(key: string): readonly RecentDelivery[];
  readonly events: Pick<Events, 'warn'>;
}

/** Adds the paths to the server of the admin port. */
export function operate(app: FastifyInstance, options: OperateOptions): void {
  const { service, operator, events } = options;
  const preHandler = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const token = options.token();
    if (token === undefined) await refuse(reply, 403, 'off: admin.token is not configured');
    else if (!isBearer(request.headers.authorization, token))
      await refuse(reply.header('WWW-Authenticate', 'Bearer'), 401, 'needs the bearer token of admin.token');
  };
  /** Undefined: the request has been answered. */
  const find = async (request: FastifyRequest, reply: FastifyReply): Promise<GivenEvent | undefined> => {
    const { route } = request.params as { route: string };
    const query = new URL(request.url, 'http://admin').searchParams;
    const routes = options.routes();
    const event = findEvent(service, routes, { route, ids: query.getAll('id'), key: query.get('key') ?? undefined });
    if (typeof event !== 'string') return event;
    await refuse(reply, routes.some(({ name }) => name === route) ? 400 : 404, event);
    return undefined;
  };

  if (options.letters) deadLetters(app, { letters: options.letters, operator, events }, preHandler);
  app.get('/-/explain/:route', { preHandler }, async (request, reply) => {
    const event = await find(request, reply);
    if (!event) return reply;
    const explanation = await operator.explain(event.key);
    const summary = summaryInWords(explanation, event.route);
    const told = { leads: leadsTo(event.key, explanation), deliveries: options.recent(event.key.id) };
    return await reply.send({ route: event.route.name, key: event.key.id, ...explanation, ...told, summary });
  });
  app.post('/-/forget/:route', { preHandler }, async (request, reply) => {
    const event = await find(request, reply);
    if (!event) return reply;
    const { route, key } = event;
    const force = new URL(request.url, 'http://admin').searchParams.get('force') === 'true';
    const result = await operator.forget(key, route.retentionMs, force);
    const said = { route: route.name, key: key.id.slice(0, 8), force, result: result.kind };
    events.warn('an operator asked for an event to be forgotten', said);
    const summary = forgettingInWords(result);
    return await reply.code(statusOf[result.kind]).send({ route: route.name, key: key.id, ...result, summary });
  });
}

const statusOf: Record<Forgetting['kind'], number> = {
  forgotten: 200,
  unknown: 404,
  'in-progress': 409,
  incomplete: 503,
};

async function refuse(reply: FastifyReply, status: number, error: string): Promise<void> {
  await reply.code(status).send({ error });
}

/** Digests are compared: they have one length, and the time tells nothing about the token. */
function isBearer(authorization: string | undefined, token: string): boolean {
  const given = /^bearer +(\S+) *$/i.exec(authorization ?? '')?.[1] ?? '';
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(token));
}
