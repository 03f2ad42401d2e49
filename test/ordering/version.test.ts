/** Versions as texts that compare like what they stand for. */
import * as fc from 'fast-check';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { versionOf } from '../../src/core/version.ts';

const number = (text: string): string => {
  const version = versionOf('number', text);
  assert.ok(version !== undefined, text);
  assert.match(version, /^\w+$/, 'letters and digits only');
  return version;
};
const time = (text: string): string => {
  const version = versionOf('timestamp', text);
  assert.ok(version !== undefined, text);
  return version;
};
const order = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

test('numbers compare like numbers, whatever their length and sign', () => {
  const inOrder = [
    ...['-1e30', '-9007199254740993', '-9007199254740992', '-100', '-99.5', '-99.25', '-1', '-0.001'],
    ...['0', '0.000000000001', '0.5', '1', '1.25', '1.5', '9', '10', '10.5', '99', '100'],
    ...['9007199254740992', '9007199254740993', '18446744073709551615', '1e30'],
  ];
  const versions = inOrder.map(number);
  assert.deepEqual(versions.toSorted(), versions);
  assert.equal(new Set(versions).size, versions.length);
});

test('what is written differently and is the same, is the same', () => {
  for (const same of [
    ['7', '7.0', '07', '0.7e1', '70E-1', ' 7 '],
    ['0', '-0', '0.0', '0e5', '-0.0000000000001'],
    ['1200', '1.2e3', '1.2e+3', '12e2'],
    ['-2.5', '-2.50', '-25e-1'],
  ])
    assert.equal(new Set(same.map(number)).size, 1, same.join());
});

test('any two integers and any two doubles compare as they do', () => {
  const integer = fc.bigInt({ min: -(10n ** 38n), max: 10n ** 38n });
  fc.assert(
    fc.property(integer, integer, (a, b) =>
      assert.equal(order(number(String(a)), number(String(b))), a < b ? -1 : a > b ? 1 : 0),
    ),
  );
  const decimal = fc.integer({ min: -1e9, max: 1e9 }).map((n) => n / 1000);
  fc.assert(
    fc.property(decimal, decimal, (a, b) =>
      assert.equal(order(number(String(a)), number(String(b))), a < b ? -1 : a > b ? 1 : 0),
    ),
  );
});

test('times compare by the instant, in any offset', () => {
  const inOrder = [
    ...['1969-12-31T23:59:58.5Z', '1969-12-31T23:59:59Z', '1969-12-31T23:59:59.999999Z', '1970-01-01T00:00:00Z'],
    ...[
      '2000-03-01T00:00:00+13:00',
      '2000-02-29T12:00:00Z',
      '2026-11-30T01:02:03-05:00',
      '2026-11-30T06:02:03.000001Z',
    ],
    ...['2026-11-30 07:02:04+01:00', '2026-11-30T06:02:04.5+0000', '2026-12-31T23:59:60Z', '2100-03-01T00:00:00Z'],
  ];
  const versions = inOrder.map(time);
  assert.deepEqual(versions.toSorted(), versions);
  assert.equal(new Set(versions).size, versions.length);
  const same = [
    '2026-11-30T01:02:03-05:00',
    '2026-11-30T06:02:03Z',
    '2026-11-30t06:02:03.000z',
    '2026-11-29 23:02:03.0-0700',
  ];
  assert.equal(new Set(same.map(time)).size, 1);
});

test('every instant of a date is that of the calendar', () => {
  const from = Date.UTC(1900, 0, 1);
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 200 * 365 * 86_400 }), (s) => {
      const ms = from + s * 1000;
      if (ms < 0) return;
      assert.equal(time(new Date(ms).toISOString()), number(String(ms / 1000)));
    }),
  );
});

test('what is no version is none', () => {
  for (const text of ['', 'seven', '1,5', '0x10', 'NaN', 'Infinity', '1.', '--1', '1e999', '9'.repeat(41)])
    assert.equal(versionOf('number', text), undefined, text);
  for (const text of [
    ...['', '2026-11-30', '2026-11-30T01:02:03', '2026-13-01T00:00:00Z', '2026-02-29T00:00:00Z', '1790000000'],
    ...['2026-11-31T00:00:00Z', '2026-11-30T24:00:00Z', '2026-11-30T00:60:00Z', '2026-11-30T00:00:00 UTC'],
  ])
    assert.equal(versionOf('timestamp', text), undefined, text);
});
