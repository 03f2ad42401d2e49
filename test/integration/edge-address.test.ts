/** An application on a UNIX socket, on IPv6, and under a name of its own. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { mkdtemp, rm } from 'node:fs/promises';
import type { AddressInfo, ListenOptions } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { systemClock } from '../../src/clock.ts';
import type { AppRequest } from '../../src/core/ports.ts';
import { createUpstream } from '../../src/upstream.ts';
import { proxyingEdge } from '../support/proxied.ts';
import { ask } from '../support/raw-connection.ts';

const limits = {
  timeoutMs: 5_000,
  connectTimeoutMs: 5_000,
  keepAliveMs: 1_000,
  maxInFlight: 2,
  maxWaiting: 0,
  maxWaitMs: 0,
  maxReply: 100,
};

/** What a delivery and a request on no route look like to an application at `listen`: the lines that name a host. */
async function seenAt(
  listen: ListenOptions,
  urlOf: (port: number) => string,
  host: 'preserve' | 'upstream' = 'preserve',
  headers: readonly string[] = ['Host', 'hooks.example:8443'],
): Promise<string[][]> {
  const seen: string[][] = [];
  const application = createServer((req, res) => {
    seen.push(
      req.rawHeaders.flatMap((name, i) =>
        i % 2 === 0 && /host$|-proto$/i.test(name) ? [`${name}: ${req.rawHeaders[i + 1]}`] : [],
      ),
    );
    res.end('ok');
  });
  application.listen(listen);
  await once(application, 'listening');
  const url = urlOf((application.address() as AddressInfo).port);
  const upstream = createUpstream({ ...limits, url, host }, systemClock);
  const post: AppRequest = { method: 'POST', target: '/hook', headers, body: Buffer.from('{}') };
  const result = await upstream.send(post, () => true);
  assert.equal(result.kind, 'answered');
  await upstream[Symbol.asyncDispose]();

  await using edge = await proxyingEdge({ url, host });
  const [, named] = headers;
  const answer = await ask(edge.port, `GET /x HTTP/1.1\r\nHost: ${named}\r\n\r\n`);
  assert.equal(answer.status, 200);
  application.close();
  application.closeAllConnections();
  return seen;
}

test('an application on a UNIX socket', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'hookonce-socket-'));
  const path = join(folder, 'app.sock');
  const [delivered, passed] = await seenAt({ path }, () => `unix:${path}`);
  assert.deepEqual(delivered, ['host: hooks.example:8443']);
  assert.deepEqual(passed, ['Host: hooks.example:8443', 'X-Forwarded-Proto: http']);
  await rm(folder, { recursive: true });
});

test('an application on IPv6', async () => {
  const seen = await seenAt({ host: '::1', port: 0 }, (port) => `http://[::1]:${port}`);
  assert.equal(seen.length, 2);
});

test('B85: Host is kept with its port, or the application gets its own and X-Forwarded-Host', async () => {
  const here = { host: '127.0.0.1', port: 0 };
  let authority = '';
  const urlOf = (port: number): string => `http://${(authority = `127.0.0.1:${port}`)}`;
  const kept = await seenAt(here, urlOf);
  assert.ok(
    kept.every((lines) => lines[0]!.toLowerCase() === 'host: hooks.example:8443'),
    JSON.stringify(kept),
  );
  const [delivered, passed] = await seenAt(here, urlOf, 'upstream');
  assert.deepEqual(delivered, [`host: ${authority}`, 'X-Forwarded-Host: hooks.example:8443']);
  assert.deepEqual(passed, [`Host: ${authority}`, 'X-Forwarded-Proto: http', 'X-Forwarded-Host: hooks.example:8443']);
});
