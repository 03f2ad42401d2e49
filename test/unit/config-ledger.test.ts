/** The ledger in the configuration: what of it is taken, what is refused, and that its URL is never shown. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { accepted, complaints, nodes, routes, secret } from './config-source.ts';

const shared = `service: a\n${nodes('redis://a', 'redis://b', 'redis://c')}`;
const ledger = (more = '') => `ledger: {url: {env: LEDGER}${more === '' ? '' : `, ${more}`}}\n`;
const around = (url: string, files: Record<string, string> = {}) => ({ env: { SECRET: secret, LEDGER: url }, files });
const plain = around('postgres://hookonce:pa%2Fss@db.example:6432/events');

test('what is written, and what is not', () => {
  const { config, warnings } = accepted(`${shared}${ledger()}${routes()}`, plain);
  assert.deepEqual(config.ledger, {
    ...{ name: 'db.example:6432', host: 'db.example', port: 6432, database: 'events' },
    ...{ user: 'hookonce', password: 'pa/ss', tls: undefined },
    ...{ timeoutMs: 200, onDown: 'proceed', connections: 10 },
  });
  assert.deepEqual(warnings, []);
  assert.equal(accepted(`${shared}${routes()}`, plain).config.ledger, undefined);
});

test('without nodes the ledger is all there is: down means no, and nobody speaks of trials', () => {
  const { config, warnings } = accepted(`service: a\n${ledger()}${routes()}`, plain);
  assert.equal(config.ledger?.onDown, 'reject');
  assert.deepEqual(warnings, []);
  const trusting = accepted(`service: a\n${ledger('onDown: proceed')}${routes()}`, plain);
  assert.match(trusting.warnings.join(), /ledger.onDown: proceed, but there are no redis.nodes/);
});

test('a URL that is not fit is refused, and not repeated', () => {
  for (const url of [
    ...['db', 'mysql://u:hidden@h/d', 'postgres://u:hidden@h', 'postgres://h/hidden', 'postgres://u:hidden@h/a/b'],
    ...['postgres://u:hidden@h/d?sslmode=maybe', 'postgres://u:hidden@h/d?host=x', 'postgres://u:%zz@h/d'],
  ]) {
    const said = complaints(`${shared}${ledger()}${routes()}`, around(url));
    assert.equal(said.length, 1, url);
    assert.match(
      said[0]!,
      /^ledger.url: the URL in environment variable LEDGER is not fit; needs a URL such as postgres:/,
    );
    assert.doesNotMatch(said[0]!, /hidden/);
  }
  assert.match(
    complaints(`${shared}ledger: {url: 'postgres://u:p@h/d'}\n${routes()}`, plain).join(),
    /a reference, \{file/,
  );
});

test('TLS by the URL or by the section, verified unless it says otherwise', () => {
  const files = { './ca.pem': '-----BEGIN CERTIFICATE-----\n', './key.pem': '-----BEGIN PRIVATE KEY-----\n' };
  const tlsOf = (url: string, more = '') =>
    accepted(`${shared}${ledger(more)}${routes()}`, around(url, files)).config.ledger?.tls;
  const at = 'postgres://u:p@h/d';
  const none = { ca: undefined, cert: undefined, key: undefined };
  assert.equal(tlsOf(`${at}?sslmode=disable`), undefined);
  for (const mode of ['require', 'verify-ca', 'verify-full'])
    assert.deepEqual(tlsOf(`${at}?sslmode=${mode}`), { verify: true, ...none });
  assert.deepEqual(tlsOf(`${at}?sslmode=no-verify`), { verify: false, ...none });
  assert.deepEqual(tlsOf(at, 'tls: {}'), { verify: true, ...none });
  assert.deepEqual(tlsOf(at, 'tls: {ca: ./ca.pem}')?.ca?.toString(), files['./ca.pem']);
  const wrong = `${shared}${ledger('tls: {cert: ./ca.pem}')}${routes()}`;
  assert.deepEqual(complaints(wrong, around(at, files)), ['ledger.tls: found cert without key; needs both or neither']);
  assert.match(
    complaints(`${shared}${ledger('tls: {}')}${routes()}`, around(`${at}?sslmode=disable`)).join(),
    /sslmode=disable/,
  );
});

test('the claim budget holds the ledger as well', () => {
  const just = `${shared}${ledger('timeout: 300ms')}claims: {budget: 551ms}\n${routes()}`;
  accepted(just, plain);
  assert.deepEqual(complaints(just.replace('551ms', '550ms'), plain), [
    'claims.budget: found 550ms with ledger.timeout 300ms and redis.timeout 100ms; needs more than 2 × redis.timeout + ledger.timeout + 50ms, which is 550ms',
  ]);
});

test('the ledger is shared by a service, and a route can fall back on it only where it is', () => {
  assert.match(complaints(`${ledger()}${routes()}`, plain).join(), /^service: found nothing, but ledger is set/);
  const fallback = routes('onUnavailable: ledger');
  assert.match(
    complaints(`${shared}${fallback}`, plain).join(),
    /^ledger: found nothing, but route github has onUnavailable: ledger/,
  );
  const { warnings } = accepted(`${shared}${ledger()}${fallback}`, plain);
  assert.match(warnings.join(), /only PostgreSQL and another only the Redis nodes, both may forward/);
  assert.deepEqual(accepted(`${shared}${ledger('onDown: reject')}${fallback}`, plain).warnings, []);
});
