/**
 * Dead letters on the admin port, for whoever has its token.
 *
 *     GET  /-/dlq?route=&status=&key=&limit=&after=<id>        GET /-/dlq/<id>        GET /-/dlq/<id>/body
 *     POST /-/dlq/<id>/replay?force=true                       POST /-/dlq/<id>/discard
 *     POST /-/dlq/replay?all=true or a filter                  POST /-/dlq/discard?all=true or a filter
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { DeadLetters } from '../core/dead-letters.ts';
import { briefly, countsInWords, fully, replayedInWords } from '../core/letter-in-words.ts';
import type { Operator } from '../core/operator.ts';
import type { Events } from '../core/ports.ts';
import { forEach, list, replay, type Counts, type Filter, type Replayed } from '../core/redelivery.ts';

export interface DeadLetterOptions {
  readonly letters: DeadLetters;
  readonly operator: Operator;
  readonly events: Pick<Events, 'warn'>;
}

type Guard = (request: FastifyRequest, reply: FastifyReply) => Promise<void>;

const LISTED = 100;
const MOST_LISTED = 1000;

/** Adds the paths to the server of the admin port. `guard` lets pass whoever has the token. */
export function deadLetters(admin: FastifyInstance, options: DeadLetterOptions, guard: Guard): void {
  void admin.register((app, _, done) => {
    app.setErrorHandler(async (error, _request, reply) => {
      options.events.warn('dead letters cannot be had', { error });
      return await refuse(reply, 503, 'the queue does not answer');
    });
    addPaths(app, options, guard);
    done();
  });
}

function addPaths(app: FastifyInstance, { letters, operator, events }: DeadLetterOptions, guard: Guard): void {
  const options = { preHandler: guard };
  const one = async (id: string, force: boolean): Promise<Replayed> => await replay(letters, operator, id, force);

  app.get('/-/dlq', options, async (request, reply) => {
    const asked = askedFor(request);
    if (typeof asked === 'string') return await refuse(reply, 400, asked);
    const { filter, limit, after } = asked;
    const found = await list(letters, filter, limit, after);
    return await reply.send({ ...found, letters: found.letters.map(briefly) });
  });
  app.get('/-/dlq/:id', options, async (request, reply) => {
    const letter = await letters.get(idOf(request));
    return letter ? await reply.send(fully(letter)) : await refuse(reply, 404, 'no such dead letter');
  });
  app.get('/-/dlq/:id/body', options, async (request, reply) => {
    const letter = await letters.get(idOf(request));
    if (!letter) return await refuse(reply, 404, 'no such dead letter');
    return await reply.type('application/octet-stream').send(letter.delivery.body);
  });
  app.post('/-/dlq/:id/replay', options, async (request, reply) => {
    const [id, { force }] = [idOf(request), flagsOf(request)];
    const replayed = await one(id, force);
    events.warn('an operator replayed a dead letter', { id, force, result: replayed.kind });
    const { kind: result, ...rest } = replayed;
    return await reply.code(STATUS[result]).send({ id, result, ...rest, summary: replayedInWords(id, replayed) });
  });
  app.post('/-/dlq/:id/discard', options, async (request, reply) => {
    const id = idOf(request);
    const result = await letters.discard(id);
    events.warn('an operator discarded a dead letter', { id, result });
    return await reply.code(STATUS[result]).send({ id, result });
  });
  for (const action of ['replay', 'discard'] as const) {
    app.post(`/-/dlq/${action}`, options, async (request, reply) => {
      const asked = askedFor(request);
      const { all, force } = flagsOf(request);
      if (typeof asked === 'string') return await refuse(reply, 400, asked);
      const { filter } = asked;
      if (!all && Object.values(filter).every((part) => part === undefined))
        return await refuse(reply, 400, 'say which: by route, status or key, or all=true');
      const act = async (id: string): Promise<keyof Counts> =>
        action === 'discard' ? await letters.discard(id) : (await one(id, force)).kind;
      const counts = await forEach(letters, await letters.ids(), filter, act);
      events.warn(`an operator ${action}ed dead letters`, { ...filter, all, force, ...counts });
      return await reply.send({ ...counts, summary: countsInWords(counts) });
    });
  }
}

const STATUS: Record<Replayed['kind'] | 'discarded', number> = {
  replayed: 202,
  discarded: 200,
  gone: 404,
  'done-before': 409,
};

const idOf = (request: FastifyRequest): string => (request.params as { id: string }).id;
const queryOf = (request: FastifyRequest): URLSearchParams => new URL(request.url, 'http://admin').searchParams;

function flagsOf(request: FastifyRequest): { all: boolean; force: boolean } {
  const query = queryOf(request);
  return { all: query.get('all') === 'true', force: query.get('force') === 'true' };
}

function askedFor(request: FastifyRequest): { filter: Filter; limit: number; after: string | undefined } | string {
  const { route, status, key, limit, after, ...rest } = Object.fromEntries(queryOf(request));
  const unknown = Object.keys(rest).find((name) => name !== 'all' && name !== 'force');
  // A filter that is misspelt would mean all.
  if (unknown !== undefined) return `unknown parameter ${unknown}`;
  if (status !== undefined && !/^[1-5]\d\d$/.test(status)) return 'status: a status such as 500';
  if (limit !== undefined && !/^[1-9]\d{0,3}$/.test(limit)) return `limit: 1 to ${MOST_LISTED}`;
  return {
    filter: { route, key, status: status === undefined ? undefined : Number(status) },
    limit: Math.min(MOST_LISTED, Number(limit ?? LISTED)),
    after,
  };
}

async function refuse(reply: FastifyReply, status: number, error: string): Promise<FastifyReply> {
  return await reply.code(status).send({ error });
}
