/** Bodies taken apart: what each element is called, and what is left of a body without some of them. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import * as fc from 'fast-check';
import type { Verified } from '../../src/core/delivery.ts';
import { MAX_ELEMENTS, takeApart, type ElementRule, type Elements } from '../../src/core/elements.ts';
import { documentStart, listAt } from '../../src/core/elements-ranges.ts';
import { identify } from '../../src/core/identify.ts';
import { parsePointer } from '../../src/core/json-pointer.ts';

const at = (text: string) => parsePointer(text)!;
const ids = (list: string, ...each: string[]): ElementRule => ({
  list: at(list),
  each: each.map((one) => ({ pointer: at(one.replace(/\?$/, '')), optional: one.endsWith('?') })),
});
const delivery = (body: string | Buffer): Verified => ({ body: Buffer.from(body) }) as unknown as Verified;
const apart = (rule: ElementRule, body: string | Buffer) => takeApart(rule, 'tests', 'route', delivery(body));

function elements(rule: ElementRule, body: string | Buffer): Elements {
  const found = apart(rule, body);
  if (typeof found === 'string') assert.fail(found);
  return found;
}

/** The key of each element by itself, in the order of the body. */
const keyOf = (rule: ElementRule, element: string, around = (list: string) => list): string => {
  const [key, ...others] = elements(rule, around(`[${element}]`)).keys;
  assert.equal(others.length, 0);
  return key!.id;
};

suite('names', () => {
  const rule = ids('', '/id');

  test('an element alone is the event that the delivery as a whole would be', () => {
    const body = '[{"id":"a"}]';
    const identity = { parts: [{ from: 'json-list', list: [], each: [{ pointer: ['id'] }] }] } as const;
    const whole = identify(
      { ...identity, bodyHash: false, missing: 'reject', scope: 'route' },
      'tests',
      'route',
      delivery(body),
    );
    assert.ok(!('kind' in whole));
    assert.deepEqual(elements(rule, body).keys, [whole]);
  });

  test('the order of the elements, their other members and white space do not matter; service and route do', () => {
    const keys = elements(rule, '[{"id":"a","n":1},{"id":"b"}]').keys;
    assert.deepEqual(elements(rule, ' [ {"x":[],"id":"b"} , {"id":"\\u0061"} ]\n').keys, keys);
    assert.ok(keys[0]!.id < keys[1]!.id);
    const other = takeApart(rule, 'tests', 'other', delivery('[{"id":"a"},{"id":"b"}]'));
    assert.ok(typeof other !== 'string' && other.keys.every(({ id }) => keys.every((key) => key.id !== id)));
  });

  test('1 and "1" are two, and long numbers are not rounded to one another', () => {
    const body = '[{"id":1},{"id":"1"},{"id":9007199254740993},{"id":9007199254740992}]';
    assert.equal(elements(rule, body).keys.length, 4);
  });

  test('parts of a name do not run into each other, and optional ones may be missing', () => {
    const two = ids('', '/a?', '/b?');
    assert.equal(elements(two, '[{"a":"x"},{"b":"x"},{"a":"x","b":"x"},{"a":"xx"}]').keys.length, 4);
    assert.equal(apart(two, '[{"a":"x"},{}]'), 'unnamed');
  });
});

suite('deliveries that cannot be taken apart', () => {
  const rule = ids('/events', '/id');
  const bad: Record<string, string | Buffer> = {
    'no JSON': 'events=1',
    'cut off': '{"events":[{"id":"a"}',
    'two documents': '{"events":[{"id":"a"}]}{"events":[]}',
    empty: '',
    'no list': '{"events":{"id":"a"}}',
    'a list elsewhere': '[{"id":"a"}]',
    'no elements': '{"events":[]}',
    'an element without an id': '{"events":[{"id":"a"},{"ID":"b"}]}',
    'an element with an empty id': '{"events":[{"id":"a"},{"id":" "}]}',
    'an element that is no object': '{"events":[{"id":"a"},7]}',
    'an id that is a list': '{"events":[{"id":["a"]}]}',
    'an id that is no text': Buffer.concat([
      Buffer.from('{"events":[{"id":"a'),
      Buffer.from([0xff]),
      Buffer.from('"}]}'),
    ]),
    'the list twice': '{"events":[{"id":"a"}],"events":[{"id":"b"}]}',
    'the list twice, once in disguise': '{"events":[{"id":"a"}],"\\u0065vents":[{"id":"b"}]}',
  };
  for (const [what, body] of Object.entries(bad)) test(what, () => assert.equal(apart(rule, body), 'unnamed'));

  test(`more than ${MAX_ELEMENTS} elements`, () => {
    const body = (count: number) => `[${Array.from({ length: count }, (_, n) => `{"id":${n}}`).join()}]`;
    assert.equal(elements(ids('', '/id'), body(MAX_ELEMENTS)).count, MAX_ELEMENTS);
    assert.equal(apart(ids('', '/id'), body(MAX_ELEMENTS + 1)), 'too_many');
  });

  test('nested far too deeply: the process lives', () => {
    const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`;
    const found = apart(ids('', '/id'), `[{"id":"a","x":${deep}},{"id":"b"}]`);
    assert.ok(typeof found === 'string' || found.count === 2);
    assert.equal(apart(ids('', '/id'), '['.repeat(400_000)), 'unnamed');
  });
});

suite('what is left of a body', () => {
  const rule = ids('/events', '/id');
  const left = (body: string, ...kept: string[]) => {
    const keys = new Set(kept.map((id) => keyOf(rule, `{"id":"${id}"}`, (list) => `{"events":${list}}`)));
    return elements(rule, body).only(keys)?.toString();
  };
  const body =
    '{ "a" : 1,\n "events": [\n  {"id":"1", "x": "[,]"} ,\n  {"id":"2"},\n  {"id":"3"}\n ] , "z":[{"id":"2"}]}\n';

  test('everything: the body as it came', () => assert.equal(left(body, '1', '2', '3'), undefined));
  test('without the first, one in between, the last', () => {
    assert.equal(left(body, '2', '3'), body.replace('{"id":"1", "x": "[,]"} ,\n  ', ''));
    assert.equal(left(body, '1', '3'), body.replace(' ,\n  {"id":"2"}', ''));
    assert.equal(left(body, '1', '2'), body.replace(',\n  {"id":"3"}', ''));
  });
  test('one alone', () => {
    assert.equal(left(body, '2'), body.replace('{"id":"1", "x": "[,]"} ,\n  ', '').replace(',\n  {"id":"3"}', ''));
  });
  test('the second of two that are the same event goes', () => {
    const twice = '{"events":[{"id":"1","n":1},{"id":"2"},{"id":"1","n":2}]}';
    assert.equal(left(twice, '1', '2'), '{"events":[{"id":"1","n":1},{"id":"2"}]}');
    assert.deepEqual([elements(rule, twice).count, elements(rule, twice).keys.length], [3, 2]);
  });
  test('a byte order mark, names in disguise, equal names and bytes that are no text stay as they are', () => {
    const odd = Buffer.concat([
      Buffer.from('\ufeff{"\\u0065vents":[{"id":"1","id":"2"},{"\\u0069d":"3","x":"'),
      Buffer.from([0xff, 0xc3, 0x22, 0x2c, 0x22, 0x79, 0x22, 0x3a]),
      Buffer.from('1e400,"big":12345678901234567890.10}]}'),
    ]);
    const found = elements(rule, odd);
    const kept = new Set([keyOf(rule, '{"id":"3"}', (list) => `{"events":${list}}`)]);
    const cut = found.only(kept)!;
    assert.equal(cut.toString('latin1'), odd.toString('latin1').replace('{"id":"1","id":"2"},', ''));
  });
});

suite('any JSON', () => {
  interface Written {
    readonly id: string;
    readonly text: string;
  }
  const space = fc.string({ unit: fc.constantFrom(' ', '\t', '\n', '\r'), maxLength: 3 });
  const char = fc.oneof(
    { weight: 6, arbitrary: fc.string({ unit: 'binary', minLength: 1, maxLength: 3 }) },
    fc.constantFrom('"', '\\', '[', ']', '{', '}', ',', ':', '\u2028', 'é', '😀', '\\"', '\n'),
  );
  /** A JSON string that may escape what need not be escaped. */
  const written = (text: string): fc.Arbitrary<string> =>
    fc.array(fc.boolean(), { minLength: text.length, maxLength: text.length }).map((escaped) => {
      const unit = (i: number) => `\\u${text.charCodeAt(i).toString(16).padStart(4, '0')}`;
      const plain = (one: string, i: number) =>
        /[\ud800-\udfff]/.test(one) ? unit(i) : JSON.stringify(one).slice(1, -1);
      return `"${text
        .split('')
        .map((one, i) => (escaped[i] ? unit(i) : plain(one, i)))
        .join('')}"`;
    });
  const string = fc.array(char, { maxLength: 6 }).chain((parts) => written(parts.join('')));
  const number = fc.constantFrom('0', '-0', '1.10', '12345678901234567890', '1e400', '-1E-7', '9007199254740993');
  const spaced = (parts: string[], pads: string[]) =>
    parts.map((part, i) => `${pads[i % pads.length]}${part}`).join('');
  const pads = fc.array(space, { minLength: 1, maxLength: 8 });
  const { value } = fc.letrec<{ value: string; list: string; object: string }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      string,
      number,
      fc.constantFrom('true', 'false', 'null'),
      tie('list'),
      tie('object'),
    ),
    list: fc.tuple(fc.array(tie('value'), { maxLength: 3 }), pads).map(([all, gaps]) => {
      const parts = all.flatMap((one, i) => (i === 0 ? [one] : [',', one]));
      return spaced(['[', ...parts, ']'], gaps);
    }),
    object: fc
      .tuple(fc.array(fc.tuple(string, tie('value')), { maxLength: 3 }), pads)
      .map(([all, gaps]) =>
        spaced(['{', ...all.flatMap(([k, v], i) => [...(i === 0 ? [] : [',']), k, ':', v]), '}'], gaps),
      ),
  }));
  const member = fc.tuple(
    string.filter((name) => !['id', 'in', 'list'].includes(JSON.parse(name) as string)),
    value,
  );
  const object = (...own: [string, string][]): fc.Arbitrary<string> =>
    fc.tuple(fc.array(member, { maxLength: 3 }), fc.nat(3), pads).map(([others, place, gaps]) => {
      const all = [...others.slice(0, place), ...own, ...others.slice(place)];
      return spaced(['{', ...all.flatMap(([k, v], i) => [...(i === 0 ? [] : [',']), k, ':', v]), '}'], gaps);
    });
  const element = (id: string): fc.Arbitrary<Written> =>
    fc
      .tuple(written('id'), written(id))
      .chain(([name, text]) => object([name, text]).map((all) => ({ id, text: all.trim() })));
  const batch = fc
    .uniqueArray(
      fc
        .string({ unit: 'grapheme', minLength: 1, maxLength: 5 })
        .filter((id) => id.trim() !== '' && !id.includes('\ufffd')),
      {
        minLength: 1,
        maxLength: 6,
      },
    )
    .chain((all) => fc.tuple(...all.map(element)));

  test('is left with exactly the elements that stay, byte for byte, and the same around them', () => {
    const document = fc
      .tuple(batch, pads, written('in'), written('list'), fc.constantFrom(0, 1, 2), fc.boolean())
      .chain(([all, gaps, outer, inner, depth, mark]) => {
        const list = spaced(['[', ...all.flatMap(({ text }, i) => (i === 0 ? [text] : [',', text])), ']'], gaps);
        const one = depth === 0 ? fc.constant(list) : object([inner, list]);
        const whole = depth === 2 ? one.chain((within) => object([outer, within])) : one;
        const pointer = at(['', '/list', '/in/list'][depth]!);
        return whole.map((text) => ({
          all,
          pointer,
          body: Buffer.from(`${mark ? '\ufeff' : ''}${gaps[0]}${text}${gaps[0]}`),
        }));
      });
    fc.assert(
      fc.property(document, fc.infiniteStream(fc.boolean()), ({ all, pointer, body }, choice) => {
        const rule: ElementRule = { list: pointer, each: [{ pointer: ['id'] }] };
        const found = elements(rule, body);
        assert.deepEqual([found.count, found.keys.length], [all.length, all.length]);
        assert.equal(found.only(new Set(found.keys.map(({ id }) => id))), undefined);

        const kept = all.filter(() => choice.next().value);
        const alone = (text: string) => elements({ ...rule, list: [] }, `[${text}]`).keys[0]!.id;
        const cut = found.only(new Set(kept.map(({ text }) => alone(text)))) ?? body;
        const ranges = listAt(cut, documentStart(cut), pointer, 10);
        assert.ok(typeof ranges !== 'string');
        assert.deepEqual(
          ranges.map(({ start, end }) => cut.toString('utf8', start, end)),
          kept.map(({ text }) => text),
        );
        assert.deepEqual(parsed(cut), expected(parsed(body), pointer, new Set(kept.map(({ id }) => id))));
        if (kept.length === all.length) assert.ok(cut.equals(body));
      }),
      { numRuns: 300 },
    );
  });

  test('and anything that is nearly JSON is left alone, or taken apart as the parser sees it', () => {
    const list = fc.array(fc.oneof(object(['"id"', '"a"']), object(['"id"', '1']), value), { maxLength: 4 });
    const body = fc
      .tuple(list, fc.boolean())
      .map(([all, deep]) => (deep ? `{"list":[${all.join()}]}` : `[${all.join()}]`));
    const damage = fc.record({ at: fc.nat(), cut: fc.nat({ max: 2 }), put: fc.uint8Array({ maxLength: 2 }) });
    const mutant = fc.tuple(body, fc.option(damage)).map(([text, harm]) => {
      const bytes = Buffer.from(text);
      if (harm === null) return bytes;
      const from = harm.at % bytes.length;
      return Buffer.concat([bytes.subarray(0, from), harm.put, bytes.subarray(from + harm.cut)]);
    });
    fc.assert(
      fc.property(mutant, fc.constantFrom('', '/list'), fc.nat(), (bytes, pointer, pick) => {
        const found = apart(ids(pointer, '/id'), bytes);
        if (typeof found === 'string') return;
        const document = parsed(bytes) as Record<string, unknown>;
        const seen = (pointer === '' ? document : document['list']) as { id: string | number }[];
        assert.equal(found.count, seen.length);
        assert.equal(found.keys.length, new Set(seen.map(({ id }) => id)).size);
        const kept = found.keys[pick % found.keys.length]!.id;
        const rest = parsed(found.only(new Set([kept])) ?? bytes) as Record<string, unknown>;
        assert.equal(((pointer === '' ? rest : rest['list']) as unknown[]).length, 1);
      }),
      { numRuns: 500 },
    );
  });

  const parsed = (bytes: Buffer): unknown => JSON.parse(bytes.toString('utf8').replace(/^\ufeff/, ''));
  /** By the parser alone. */
  const expected = (document: unknown, pointer: readonly string[], kept: ReadonlySet<string>): unknown => {
    const [token, ...rest] = pointer;
    if (token === undefined) return (document as { id: string }[]).filter(({ id }) => kept.has(id));
    const members = Object.entries(document as object);
    return Object.fromEntries(members.map(([name, one]) => [name, name === token ? expected(one, rest, kept) : one]));
  };
});

suite('elements that hold elements', () => {
  const rule: ElementRule = {
    list: at('/entry'),
    within: [ids('/value/messages', '/id'), ids('/value/statuses', '/id', '/status')],
    beside: [at('/field'), at('/value/contacts')],
  };
  const message = (id: string) => `{"id":"${id}"}`;
  const entry = (messages: string[], more = '"contacts":[]') =>
    `{"field":"messages","value":{${more},"messages":[${messages.map(message).join()}]}}`;
  const body = (...entries: string[]) => `{"object":"x","entry":[${entries.join()}]}`;
  const key = (id: string) => keyOf({ list: [], each: [{ pointer: ['id'] }] }, message(id));

  test('are emptied one by one, and go with their last', () => {
    const found = elements(rule, body(entry(['1', '2']), entry(['3']), entry(['4', '5'])));
    assert.deepEqual([found.count, found.keys.length], [5, 5]);
    assert.equal(found.only(new Set(['2', '4', '5'].map(key)))?.toString(), body(entry(['2']), entry(['4', '5'])));
    assert.equal(found.only(new Set(['1', '2', '3', '4', '5'].map(key))), undefined);
  });

  test('are left alone when something in them is not known, or there is nothing in them', () => {
    for (const odd of [
      entry(['1'], '"errors":[{}]'),
      '{"field":"feed","value":{"item":"post"}}',
      '{"value":{"messages":[]}}',
      '{"field":"x","value":[]}',
      '7',
      '{"value":{"messages":null}}',
      '{"value":{"messages":[{"id":"9"}],"messages":[{"id":"8"}]}}',
    ])
      assert.equal(apart(rule, body(entry(['2']), odd)), 'unnamed', odd);
  });
});
