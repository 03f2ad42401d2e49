import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { nearest } from '../../src/config/nearest.ts';
import { formatDuration, formatSize, parseDuration, parseSize } from '../../src/config/units.ts';
import { readYaml } from '../../src/config/yaml.ts';
import { load } from './config-source.ts';

test('durations and sizes have one number and one unit', () => {
  for (const [text, ms] of [
    ['300ms', 300],
    ['15s', 15_000],
    ['1.5s', 1500],
    ['0.25s', 250],
    ['5m', 300_000],
    ['2h', 7_200_000],
    ['7d', 604_800_000],
    ['0s', 0],
  ] as const) {
    assert.equal(parseDuration(text), ms, text);
  }
  for (const [text, bytes] of [
    ['512B', 512],
    ['64KiB', 65_536],
    ['1MiB', 1_048_576],
    ['1.5MiB', 1_572_864],
    ['2GiB', 2 * 1024 ** 3],
  ] as const) {
    assert.equal(parseSize(text), bytes, text);
  }
  const neither = [
    '',
    '15',
    's',
    '15 s',
    ' 15s',
    '15s\n',
    '-15s',
    '+15s',
    '1e3s',
    '0.0001s',
    '0.5B',
    '15S',
    '15x',
    '1h30m',
    '1MB',
    '1Mi',
    '.5s',
    '5.s',
    '15constructor',
    '9999999999999999d',
  ];
  for (const text of neither) {
    assert.equal(parseDuration(text), undefined, text);
    assert.equal(parseSize(text), undefined, text);
  }
});

test('durations and sizes are shown so that they read back as the same', () => {
  fc.assert(fc.property(fc.nat(), (ms) => parseDuration(formatDuration(ms)) === ms));
  fc.assert(fc.property(fc.nat(), (bytes) => parseSize(formatSize(bytes)) === bytes));
  assert.deepEqual([0, 1, 1000, 90_000, 3_600_000, 604_800_000].map(formatDuration), [
    '0ms',
    '1ms',
    '1s',
    '90s',
    '1h',
    '7d',
  ]);
});

test('the nearest name is one that a slip of the hand explains', () => {
  const known = ['timeout', 'connectTimeout', 'maxInFlight', 'name', 'path', 'secrets', 'check'];
  const near = {
    timeoutMS: 'timeout',
    TIMEOUT: 'timeout',
    conecttimeout: 'connectTimeout',
    secrett: 'secrets',
    chekc: 'check',
    maxinflght: 'maxInFlight',
  };
  for (const [name, meant] of Object.entries(near)) assert.equal(nearest(name, known), meant, name);
  for (const name of ['mode', '', 'x', 'ordering', 'queue']) assert.equal(nearest(name, known), undefined, name);
});

test('faults of the text have a line and a column', () => {
  const said = (text: string) => {
    const read = readYaml(text);
    return read.ok ? [] : read.complaints;
  };
  assert.deepEqual(said('a: 1\nb: 2\na: 3\nb: 4'), [
    'line 3, column 1: this name appears twice in the same mapping',
    'line 4, column 1: this name appears twice in the same mapping',
  ]);
  assert.deepEqual(said('a:\n  b: {c: 1, d: 2, c: 3}'), [
    'line 2, column 19: this name appears twice in the same mapping',
  ]);
  assert.deepEqual(said('a: "x'), ['line 1, column 6: a quote, bracket, colon, comma or blank is missing here']);
  assert.deepEqual(said('a:\n\t- b'), ['line 2, column 1: a tab is used for indentation; use blanks']);
  assert.deepEqual(said('a: 1\n---\nb: 2'), [
    'line 2, column 1: a second document (---) begins; the configuration is one document',
  ]);
  assert.deepEqual(said('a: 1\nb: *c'), ['line 2, column 4: this alias (*name) has no anchor (&name) before it']);
  assert.deepEqual(said('a: !env X'), ['line 1, column 4: tags (!name) are not used here']);
  assert.deepEqual(said(' a: 1\nb: 2\nc: 3\nd: 4'), [
    'line 2, column 1: unexpected text; is there a quote, bracket or indentation amiss?',
  ]);
  const bomb = Array.from(
    { length: 12 },
    (_, i) => `b${i}: &b${i} [${Array.from({ length: 9 }, () => (i === 0 ? 'x' : `*b${i - 1}`)).join(', ')}]`,
  );
  assert.deepEqual(said(bomb.join('\n')), ['the aliases (*name) unfold into far too much']);
});

test('numbers are numbers in every way that YAML writes them', () => {
  assert.deepEqual(readYaml('a: 1e6\nb: 1e+06\nc: 0x10\nd: 1_000\ne: 1.0\nf: on'), {
    ok: true,
    value: { a: 1_000_000, b: 1_000_000, c: 16, d: '1_000', e: 1, f: 'on' },
  });
});

test('no text whatever makes loading throw', () => {
  const yamlish = fc.array(
    fc.constantFrom(
      'routes',
      ': ',
      '\n',
      '  ',
      '- ',
      '{',
      '}',
      '[',
      ']',
      '&a',
      '*a',
      '<<',
      '"',
      "'",
      '!',
      '|',
      '#',
      '1',
      'name',
      'secrets',
      'redis',
      'nodes',
      '\t',
      '?',
      ',',
      '__proto__',
    ),
  );
  fc.assert(
    fc.property(
      fc.oneof(
        yamlish.map((parts) => parts.join('')),
        fc.string(),
      ),
      (text) => !load(text).ok,
    ),
  );
});

test('no value in the place of another makes loading throw', () => {
  const value = fc.jsonValue({ maxDepth: 3 });
  const names = [
    'service',
    'listen',
    'admin',
    'upstream',
    'limits',
    'redis',
    'claims',
    'routes',
    'unmatched',
    'trustedProxies',
    'readiness',
    'drain',
    'log',
  ];
  const somewhere = fc.oneof(
    fc.tuple(fc.constantFrom(...names), value).map(([name, given]) => ({ [name]: given })),
    value.map((nodes) => ({ redis: { nodes: [nodes, { url: nodes, password: nodes, tls: nodes }] } })),
    value.map((any) => ({
      routes: [
        { name: any, path: any, sender: any, verify: any, secrets: any, identity: any, inFlight: any, completeOn: any },
      ],
    })),
  );
  fc.assert(fc.property(somewhere, (raw) => !load(JSON.stringify({ routes: [], ...raw })).ok));
});
