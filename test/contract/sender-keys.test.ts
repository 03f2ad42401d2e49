/** What the port for published keys promises to the core: on a real https server, and on the fake that the spine is tested with. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { suite, test } from 'node:test';
import type { SenderKeys } from '../../src/core/ports.ts';
import { createSenderKeys } from '../../src/keys.ts';
import { selfSigned } from '../support/certificate.ts';
import { FakeKeys } from '../support/gate.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { recordedEvents } from '../support/recorded-events.ts';

interface Rig extends AsyncDisposable {
  readonly keys: SenderKeys;
  readonly origin: string;
  publish(path: string, text: string): void;
}

function contract(name: string, start: () => Promise<Rig>): void {
  test(`${name}: what is published is handed out, and what is not is undefined`, async () => {
    await using rig = await start();
    rig.publish('/a.pem', 'a key');
    assert.equal(await rig.keys.get({ url: `${rig.origin}/a.pem` }), 'a key');
    assert.equal(await rig.keys.get({ url: `${rig.origin}/b.pem` }), undefined);
  });

  test(`${name}: a visit says whether it succeeded`, async () => {
    await using rig = await start();
    rig.publish('/?confirm', 'confirmed');
    assert.equal(await rig.keys.visit(`${rig.origin}/?confirm`), true);
  });
}

contract('the fake', async () => {
  const keys = new FakeKeys();
  const origin = 'https://sender.example';
  return {
    keys,
    origin,
    publish: (path, text) => void keys.published.set(origin + path, text),
    [Symbol.asyncDispose]: async () => {},
  };
});

contract('https', startSender);

suite('https', () => {
  test('a document is read once, for a day', async () => {
    await using rig = await startSender();
    rig.publish('/a', 'first');
    const get = async () => await rig.keys.get({ url: `${rig.origin}/a` });
    assert.deepEqual(await Promise.all([get(), get(), get()]), ['first', 'first', 'first']);
    rig.publish('/a', 'second');
    assert.equal(await get(), 'first');
    assert.equal(rig.requests.length, 1);
    await rig.clock.advance(24 * 3_600_000);
    assert.equal(await get(), 'second');
  });

  test('after a failure the same is not asked again for ten seconds, and then it is', async () => {
    await using rig = await startSender();
    const get = async () => await rig.keys.get({ url: `${rig.origin}/late` });
    assert.deepEqual([await get(), await get()], [undefined, undefined]);
    rig.publish('/late', 'here');
    assert.equal(await get(), undefined);
    assert.equal(rig.requests.length, 1);
    await rig.clock.advance(10_000);
    assert.equal(await get(), 'here');
  });

  test('a question is posted, and its answers are kept apart', async () => {
    await using rig = await startSender();
    rig.publish('/ask', 'answer');
    for (const id of ['1', '2', '1']) await rig.keys.get({ url: `${rig.origin}/ask`, question: { id } });
    assert.deepEqual(rig.requests, ['POST /ask {"id":"1"}', 'POST /ask {"id":"2"}']);
  });

  test('neither a redirect is followed nor plain http asked, and no address is told but its origin', async () => {
    await using rig = await startSender();
    rig.publish('/target', 'elsewhere');
    assert.equal(await rig.keys.get({ url: `${rig.origin}/redirect` }), undefined);
    assert.equal(await rig.keys.get({ url: `${rig.origin.replace('https', 'http')}/target` }), undefined);
    assert.equal(await rig.keys.visit(`${rig.origin}/redirect`), false);
    assert.deepEqual(rig.requests, ['GET /redirect ', 'GET /redirect ']);
    const told = JSON.stringify(rig.events.of('warn'));
    assert.ok(told.includes(rig.origin) && !told.includes('/redirect'));
  });

  test('what is too large, breaks off or does not come in time is undefined', async () => {
    await using rig = await startSender();
    rig.publish('/large', 'a'.repeat(64 * 1024 + 1));
    for (const path of ['/large', '/broken'])
      assert.equal(await rig.keys.get({ url: rig.origin + path }), undefined, path);
    const silent = rig.keys.get({ url: `${rig.origin}/silent` });
    await rig.silent;
    await rig.clock.advance(3_000);
    assert.equal(await silent, undefined);
  });

  test('only so many questions are on their way at the same time', async () => {
    await using rig = await startSender();
    rig.publish('/a', 'a key');
    const open = ['/silent?1', '/silent?2', '/silent?3', '/silent?4'].map((path) =>
      rig.keys.get({ url: rig.origin + path }),
    );
    await rig.silent;
    assert.equal(await rig.keys.get({ url: `${rig.origin}/a` }), undefined);
    await rig.clock.advance(3_000);
    await Promise.all(open);
    assert.equal(await rig.keys.get({ url: `${rig.origin}/a` }), 'a key', 'which was no failure of its own');
  });

  test('a certificate that nobody vouches for is not believed', async () => {
    await using rig = await startSender();
    rig.publish('/a', 'a key');
    await using doubting = createSenderKeys(rig.clock, rig.events);
    assert.equal(await doubting.get({ url: `${rig.origin}/a` }), undefined);
    assert.deepEqual(rig.requests, []);
  });
});

interface RealRig extends Rig {
  readonly clock: ManualClock;
  readonly events: ReturnType<typeof recordedEvents>;
  /** Method, target and body of what was asked. */
  readonly requests: string[];
  /** Resolves once somebody waits for `/silent`. */
  readonly silent: Promise<void>;
}

async function startSender(): Promise<RealRig> {
  const { cert, key } = selfSigned();
  const documents = new Map<string, string>();
  const requests: string[] = [];
  const silent = Promise.withResolvers<void>();
  const answer = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    let body = '';
    for await (const chunk of req) body += String(chunk);
    requests.push(`${req.method} ${req.url} ${body}`);
    if (req.url!.startsWith('/silent')) return silent.resolve();
    if (req.url === '/broken') return void res.writeHead(200, { 'Content-Length': 10 }).write('a', () => res.destroy());
    if (req.url === '/redirect') return void res.writeHead(302, { Location: '/target' }).end();
    const found = documents.get(req.url!);
    res.writeHead(found === undefined ? 404 : 200).end(found);
  };
  const server = createServer({ cert, key }, (req, res) => void answer(req, res));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const clock = new ManualClock();
  const events = recordedEvents();
  const keys = createSenderKeys(clock, events, { ca: cert });
  return {
    ...{ clock, events, keys, requests, silent: silent.promise },
    origin: `https://localhost:${(server.address() as AddressInfo).port}`,
    publish: (path, text) => void documents.set(path, text),
    [Symbol.asyncDispose]: async () => {
      await keys[Symbol.asyncDispose]();
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
