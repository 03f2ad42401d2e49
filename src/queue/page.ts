/**
 * The page about the queue, on the admin port under `/-/queue/`: bull-board, which shows jobs without bodies and
 * headers. Everybody sees it who reaches the port; with the token of the admin port, given as the password of HTTP's
 * Basic scheme or as a bearer token, jobs can be replayed and removed as well. `/-/queue/unlock` makes a browser ask.
 *
 * It is a server of its own that listens nowhere: bull-board needs parsers and error handlers like no other path.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { existsSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { fileURLToPath } from 'node:url';
import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { FastifyAdapter } from '@bull-board/fastify';
import fastify from 'fastify';
import type { Replayed } from '../core/redelivery.ts';
import type { BullQueue } from './backend.ts';
import type { JobData } from './job-data.ts';

const PAGE = '/-/queue';

export interface PageOptions {
  /** Undefined: the queue is not open yet. */
  readonly queue: () => BullQueue | undefined;
  /** Undefined: nobody may change anything. */
  readonly token: () => string | undefined;
  /** As everywhere else: not without a look at what has been done since. */
  readonly replay: (id: string) => Promise<Replayed>;
  readonly discard: (id: string) => Promise<'discarded' | 'gone'>;
}

export type Page = (request: IncomingMessage, response: ServerResponse) => void;

/** Answers requests below `/-/queue`. */
export function createPage(options: PageOptions): Page {
  const boards = new Map<boolean, Promise<Page>>();
  /** Made when it is first asked for: most gateways are never asked. */
  const board = async (mayChange: boolean, queue: BullQueue): Promise<Page> => {
    const made = boards.get(mayChange) ?? createBoard(queue, mayChange, options);
    boards.set(mayChange, made);
    return await made;
  };
  return (request, response) => {
    const token = options.token();
    const known = token !== undefined && isToken(request.headers.authorization, token);
    const queue = options.queue();
    if (request.url === `${PAGE}/unlock`) return unlock(response, token, known);
    if (!queue) return answer(response, 503, 'the queue is not open');
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      if (token === undefined) return answer(response, 403, 'read-only: admin.token is not configured');
      if (!known) return answer(response, 401, 'read-only without the token of admin.token', CHALLENGE);
      if (!CHANGES.test(request.url?.replace(/\?.*/, '') ?? '')) return answer(response, 403, 'not from here');
      // A browser sends along what it was told once, whoever made the page that asks.
      if (!['same-origin', 'none', undefined].includes(siteOf(request)))
        return answer(response, 403, 'asked by another site');
    }
    board(known, queue).then(
      (serve) => serve(request, response),
      () => answer(response, 500, 'the page cannot be shown'),
    );
  };
}

async function createBoard(queue: BullQueue, mayChange: boolean, options: PageOptions): Promise<Page> {
  const uiFolder = bundledUi();
  const app = fastify({ forceCloseConnections: true });
  app.addHook('onSend', async (_request, reply, payload) => {
    // Nothing is fetched from other sites, fonts included.
    reply
      .header('Content-Security-Policy', POLICY)
      .header('X-Frame-Options', 'DENY')
      .header('Cache-Control', 'no-store');
    return payload;
  });
  // Not every client says what an empty body is.
  app.addContentTypeParser('*', (_request, payload, done) => {
    payload.resume();
    done(null);
  });
  const server = new FastifyAdapter();
  server.setBasePath(PAGE);
  createBullBoard({
    queues: [boardQueue(queue, mayChange, options)],
    serverAdapter: server,
    options: {
      ...(uiFolder !== undefined && { uiBasePath: uiFolder }),
      uiConfig: { boardTitle: 'Hookonce', hideRedisDetails: true, sortQueues: false },
    },
  });
  await app.register(server.registerPlugin(), { prefix: PAGE });
  await app.ready();
  return (request, response) => app.routing(request, response);
}

/** Beside a bundle the page's files lie in a folder of their own; elsewhere they are found as a package. */
function bundledUi(): string | undefined {
  const folder = fileURLToPath(new URL('../queue-page', import.meta.url));
  return existsSync(folder) ? folder : undefined;
}

/** Bodies and headers stay out of it; a retry is a replay like any other. */
function boardQueue(queue: BullQueue, mayChange: boolean, { replay, discard }: PageOptions): BullMQAdapter {
  class Adapter extends BullMQAdapter {
    override async getJob(id: string) {
      const job = await super.getJob(id);
      return job && guarded(job, id);
    }

    override async getJobs(...asked: Parameters<BullMQAdapter['getJobs']>) {
      const jobs = await super.getJobs(...asked);
      return jobs.map((job) => guarded(job, String(job.id)));
    }
  }
  /** What waits is an event that was accepted: it is not for removing. */
  const guarded = <T extends object>(job: T, id: string): T =>
    Object.assign(job, {
      retry: async () => {
        const { kind } = await replay(id);
        if (kind === 'gone') throw new Error('no dead letter any more');
        if (kind === 'done-before') throw new Error('done since; hookonce dlq replay --force does it once more');
      },
      remove: async () => {
        if ((await discard(id)) === 'gone') throw new Error('no dead letter, or not any more');
      },
    });
  const adapter = new Adapter(queue, { readOnlyMode: !mayChange });
  adapter.setFormatter('data', (data: JobData) => ({
    ...{ route: data.route, key: data.key, method: data.method, traceId: data.traceId, replays: data.replays },
    bytes: Math.floor((data.body.length * 3) / 4),
  }));
  return adapter;
}

const POLICY =
  "default-src 'self'; style-src 'self' 'unsafe-inline'; script-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'";
/** What may be changed: dead letters replayed and removed, delayed jobs tried at once, the queue paused. Not: emptied, filled, edited. */
const CHANGES =
  /^\/-\/queue\/api\/queues\/(pause|resume|[^/]+\/(pause|resume|promote|retry\/failed|clean\/failed|[^/]+\/(retry|clean|promote)))$/;
const CHALLENGE = { 'WWW-Authenticate': 'Basic realm="hookonce: the token is the password", charset="UTF-8"' };

function unlock(response: ServerResponse, token: string | undefined, known: boolean): void {
  if (token === undefined) return answer(response, 403, 'read-only: admin.token is not configured');
  if (!known) return answer(response, 401, 'needs the token of admin.token as the password', CHALLENGE);
  return answer(response, 303, 'unlocked', { Location: `${PAGE}/` });
}

function answer(response: ServerResponse, status: number, error: string, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'Content-Type': 'application/json', ...headers });
  response.end(JSON.stringify({ error }));
}

function siteOf({ headers }: IncomingMessage): string | undefined {
  return [headers['sec-fetch-site'] ?? []].flat()[0];
}

/** Digests are compared: they have one length, and the time tells nothing about the token. */
function isToken(authorization: string | undefined, token: string): boolean {
  const [, scheme = '', value = ''] = /^(basic|bearer) +(\S+) *$/i.exec(authorization ?? '') ?? [];
  const password =
    scheme.toLowerCase() === 'basic'
      ? Buffer.from(value, 'base64')
          .toString()
          .replace(/^[^:]*:/, '')
      : value;
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(password), digest(token));
}
