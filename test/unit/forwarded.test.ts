import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { IncomingMessage } from 'node:http';
import { appAddress } from '../../src/core/app-address.ts';
import type { Peer } from '../../src/core/delivery.ts';
import { withForwarded, withHost } from '../../src/core/forwarded.ts';
import { withoutHopByHop } from '../../src/core/hop-by-hop.ts';
import { createPeers } from '../../src/http/peer.ts';

const peer = (believed: boolean): Peer => ({ address: '10.0.0.9', believed });

test('B84: the peer is appended to what came, in the last line of the name, and nothing else changes', () => {
  assert.deepEqual(withForwarded(['Host', 'a', 'X-Forwarded-For', '1.2.3.4', 'X-B', '1'], peer(true)), [
    ...['Host', 'a', 'X-Forwarded-For', '1.2.3.4, 10.0.0.9', 'X-B', '1', 'X-Forwarded-Proto', 'http'],
  ]);
  assert.deepEqual(
    withForwarded(
      ['x-forwarded-for', '1.2.3.4, 5.6.7.8', 'X-Forwarded-Proto', 'https', 'X-FORWARDED-FOR', '9.9.9.9'],
      peer(true),
    ),
    ['x-forwarded-for', '1.2.3.4, 5.6.7.8', 'X-Forwarded-Proto', 'https', 'X-FORWARDED-FOR', '9.9.9.9, 10.0.0.9'],
  );
  assert.deepEqual(withForwarded(['X-Forwarded-For', ' '], peer(true)), [
    ...['X-Forwarded-For', '10.0.0.9', 'X-Forwarded-Proto', 'http'],
  ]);
});

test('what a peer says about others is dropped when it is not among the proxies that are trusted', () => {
  const forged = [
    ...[
      'X-Forwarded-For',
      '1.2.3.4',
      'x-forwarded-proto',
      'https',
      'X-Forwarded-Host',
      'evil',
      'X-Forwarded-Port',
      '1',
    ],
    ...['Forwarded', 'for=1.2.3.4', 'X-Real-IP', '1.2.3.4', 'X-Kept', '1'],
  ];
  assert.deepEqual(withForwarded(forged, peer(false)), [
    ...['X-Kept', '1', 'X-Forwarded-For', '10.0.0.9', 'X-Forwarded-Proto', 'http'],
  ]);
});

test('without a peer, as of a connection that is gone, the lines stay as they are', () => {
  assert.deepEqual(withForwarded(['X-Forwarded-For', '1'], undefined), ['X-Forwarded-For', '1']);
});

test('B85: for another Host the one that was asked for moves into X-Forwarded-Host, unless that is there', () => {
  assert.deepEqual(withHost(['x-a', '1', 'HOST', 'hooks.example:8443'], 'app:8080'), [
    ...['Host', 'app:8080', 'x-a', '1', 'X-Forwarded-Host', 'hooks.example:8443'],
  ]);
  assert.deepEqual(withHost(['Host', 'inner', 'X-Forwarded-Host', 'outer'], 'app'), [
    'Host',
    'app',
    'X-Forwarded-Host',
    'outer',
  ]);
  assert.deepEqual(withHost([], 'app'), ['Host', 'app']);
});

test('Connection cannot take away what must stay', () => {
  const lines = ['Host', 'a', 'Content-Length', '1', 'X-Forwarded-For', '1', 'Forwarded', 'x', 'Hookonce-Attempt', '1'];
  const named = lines.filter((_, i) => i % 2 === 0).join(', ');
  assert.deepEqual(withoutHopByHop([...lines, 'X-Gone', '1', 'Connection', `${named}, x-gone`]), lines);
});

const asked = (remoteAddress: string, ...forwardedFor: string[]): IncomingMessage =>
  ({
    socket: { remoteAddress },
    rawHeaders: forwardedFor.flatMap((value) => ['X-Forwarded-For', value]),
  }) as unknown as IncomingMessage;

test('B84: the client is the nearest address that no trusted proxy has', () => {
  const peers = createPeers(['10.0.0.0/8', 'fd00::/8', '192.0.2.7']);
  for (const [client, ...came] of [
    ['203.0.113.5', '203.0.113.5', '1.2.3.4'],
    ['1.2.3.4', '10.0.0.9', '1.2.3.4'],
    ['1.2.3.4', '10.0.0.9', '6.6.6.6, 1.2.3.4, 10.1.1.1'],
    ['1.2.3.4', '::ffff:10.0.0.9', '1.2.3.4', 'fd00::1, 192.0.2.7'],
    ['10.0.0.9', '10.0.0.9'],
    ['10.0.0.9', '10.0.0.9', 'unknown'],
    ['2001:db8::1', 'fd12::9', '2001:db8::1'],
  ]) {
    assert.equal(peers.client(asked(came[0]!, ...came.slice(1))), client, came.join(' | '));
  }
  assert.equal(createPeers([]).client(asked('10.0.0.9', '1.2.3.4')), '10.0.0.9');
});

test('a peer is believed when it is among the proxies that are trusted, or none is named', () => {
  const peers = createPeers(['10.0.0.0/8']);
  assert.deepEqual(peers.of(asked('::ffff:10.0.0.9')), { address: '10.0.0.9', believed: true });
  assert.deepEqual(peers.of(asked('11.0.0.9')), { address: '11.0.0.9', believed: false });
  assert.deepEqual(createPeers([]).of(asked('::1')), { address: '::1', believed: true });
  assert.equal(peers.of({ socket: {} } as IncomingMessage), undefined);
});

test('the application’s address in its parts', () => {
  const parts = (url: string): unknown[] => {
    const { tls, host, port, socketPath, authority, servername } = appAddress(url);
    return [tls, host, port, socketPath, authority, servername];
  };
  assert.deepEqual(parts('http://127.0.0.1:8080'), [false, '127.0.0.1', 8080, undefined, '127.0.0.1:8080', undefined]);
  assert.deepEqual(parts('https://app.internal:443'), [
    true,
    'app.internal',
    443,
    undefined,
    'app.internal',
    'app.internal',
  ]);
  assert.deepEqual(parts('https://[::1]:8443'), [true, '::1', 8443, undefined, '[::1]:8443', undefined]);
  assert.deepEqual(parts('unix:/run/app.sock'), [false, 'localhost', 80, '/run/app.sock', 'localhost', undefined]);
});
