import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { createRouter, originForm } from '../../src/http/routing.ts';
import { route } from '../support/edge.ts';

const router = createRouter(
  [
    '/webhooks/stripe',
    '/webhooks/orders/*',
    '/webhooks/orders/special',
    '/webhooks/orders/deep/*',
    '/Caf\u00e9/Hook',
  ].map((path) => route(path, path)),
);

function matched(target: string): string {
  const match = router(target);
  return match.kind === 'route' ? match.route.name : match.kind;
}

const cases: [string, string][] = [
  ['/webhooks/stripe', '/webhooks/stripe'],
  ['/webhooks/stripe?a=/webhooks/orders/1', '/webhooks/stripe'],
  ['/webhooks/stripe#x', '/webhooks/stripe'],
  ['/webhooks/stripes', 'none'],
  ['/webhooks/stripe/more', 'none'],
  ['/webhooks', 'none'],
  ['/', 'none'],
  // A prefix takes what is below it, not itself.
  ['/webhooks/orders', 'none'],
  ['/webhooks/orders/', 'none'],
  ['/webhooks/ordersx', 'none'],
  ['/webhooks/orders/1', '/webhooks/orders/*'],
  ['/webhooks/orders/1/2', '/webhooks/orders/*'],
  // The most specific wins.
  ['/webhooks/orders/special', '/webhooks/orders/special'],
  ['/webhooks/orders/special/x', '/webhooks/orders/*'],
  ['/webhooks/orders/deep/1', '/webhooks/orders/deep/*'],
  ['/webhooks/orders/deep', '/webhooks/orders/*'],
  // Spellings that some application takes for the configured path.
  ['/WebHooks/STRIPE', '/webhooks/stripe'],
  ['/webhooks/stripe/', '/webhooks/stripe'],
  ['//webhooks///stripe', '/webhooks/stripe'],
  ['/webhooks/./stripe/.', '/webhooks/stripe'],
  ['/x/../webhooks/stripe', '/webhooks/stripe'],
  ['/webhooks/%73tripe', '/webhooks/stripe'],
  ['/webhooks%2Fstripe', '/webhooks/stripe'],
  ['/x/%2e%2E/webhooks/stripe', '/webhooks/stripe'],
  ['/x%2f..%2fwebhooks%2fstripe', '/webhooks/stripe'],
  ['/webhooks\\stripe', '/webhooks/stripe'],
  ['/webhooks%5cstripe', '/webhooks/stripe'],
  ['/webhooks;a=b/stripe;c', '/webhooks/stripe'],
  ['/webhooks/%53tripe', '/webhooks/stripe'],
  ['//evil.test/webhooks/stripe', '/webhooks/stripe'],
  ['/\\evil.test/webhooks/stripe', '/webhooks/stripe'],
  ['/caf%C3%A9/hook', '/Caf\u00e9/Hook'],
  ['/caf\u00c3\u00a9/hook', '/Caf\u00e9/Hook'],
  // Below a prefix for one application, out of it for another: it is verified either way.
  ['/webhooks/orders/..', '/webhooks/orders/*'],
  ['/webhooks/orders/x%2f..%2f..%2fadmin', '/webhooks/orders/*'],
  // Signed for one route, it could be taken for the other.
  ['/webhooks/orders/../stripe', 'ambiguous'],
  ['/webhooks/orders/%2e%2e/stripe', 'ambiguous'],
  ['/webhooks/orders//special', 'ambiguous'],
  // No path, and escapes that are none.
  ['*', 'none'],
  ['/%', 'none'],
  ['/%E0%A4%A', 'none'],
  ['/webhooks/%2573tripe', 'none'],
];

for (const [target, expected] of cases) {
  test(`${target} → ${expected}`, () => assert.equal(matched(target), expected));
}

test('no spelling that a common reader takes for the configured path gets past it', () => {
  const spelt = (char: string): fc.Arbitrary<string> =>
    fc.constantFrom(
      char,
      char.toUpperCase(),
      `%${char.charCodeAt(0).toString(16)}`,
      `%${char.toUpperCase().charCodeAt(0).toString(16)}`,
    );
  const between = fc.constantFrom('/', '//', '/./', '/x/../', '%2f', '/%2e/', '/x/%2E%2e/', '\\', ';p/');
  const word = (text: string): fc.Arbitrary<string> =>
    fc.tuple(...text.split('').map(spelt)).map((chars) => chars.join(''));
  const target = fc
    .tuple(
      fc.constantFrom('', '/', '/.', '/y/..', '//host'),
      word('webhooks'),
      between,
      word('stripe'),
      fc.constantFrom('', '/', '//', '/.', '?q', ';p'),
    )
    .map(([start, a, gap, b, end]) => `${start}/${a}${gap}${b}${end}`);
  fc.assert(fc.property(target, (each) => matched(each) === '/webhooks/stripe'));
});

test('what the URL parser of browsers and Node reads as the configured path is matched', () => {
  const piece = fc.constantFrom(
    '/',
    '//',
    '\\',
    '.',
    '..',
    '%2e',
    'webhooks',
    'WEBHOOKS',
    'stripe',
    '%73tripe',
    'x',
    ';',
    '?',
    '#',
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 10 }), (pieces) => {
      const target = `/${pieces.join('')}`;
      const parsed = URL.parse(target, 'http://application');
      if (parsed?.pathname !== '/webhooks/stripe') return;
      assert.notEqual(matched(target), 'none', target);
    }),
    { numRuns: 5_000 },
  );
});

test('a target of many slashes, dots or escapes takes no time to speak of', () => {
  const begun = performance.now();
  for (const unit of ['/', '\\', ';', '/..', '%2f', '/;', '%', '//x']) {
    matched(`/webhooks${unit.repeat(16_000 / unit.length)}x`);
    matched(`/${unit.repeat(16_000 / unit.length)}\n`);
  }
  assert.ok(performance.now() - begun < 2_000);
});

test('a route for everything takes everything but the root', () => {
  const all = createRouter([route('all', '/*')]);
  assert.equal(all('/x').kind, 'route');
  assert.equal(all('/').kind, 'none');
});

test('two routes whose paths are read alike are refused', () => {
  assert.throws(() => createRouter([route('a', '/a/b'), route('b', '/A/b/')]), /routes a and b have the same path/);
  assert.throws(() => createRouter([route('a', '/a/*'), route('b', '/a//*')]), /routes a and b have the same path/);
  createRouter([route('a', '/a'), route('b', '/a/*')]);
});

test('an absolute target is taken without its authority', () => {
  assert.equal(originForm('http://evil.test/a//b?c'), '/a//b?c');
  assert.equal(originForm('HTTPS://u:p@evil.test:1'), '/');
  assert.equal(originForm('http://evil.test?x'), '/?x');
  assert.equal(originForm('http://evil.test\\a'), '/\\a');
  assert.equal(originForm('/a://b'), '/a://b');
  assert.equal(originForm('*'), undefined);
  assert.equal(originForm('evil.test:443'), undefined);
  assert.equal(originForm('mailto:x'), undefined);
});
