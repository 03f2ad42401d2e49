import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { configuration, pages } from '../../docs/senders/generate.ts';
import { senders } from '../../src/senders/index.ts';
import { load } from './config-source.ts';

const folder = new URL('../../docs/senders/', import.meta.url);
const made = pages();

for (const [name, text] of made) {
  test(`docs/senders/${name} is what the presets say: node docs/senders/generate.ts writes it`, () => {
    assert.equal(readFileSync(new URL(name, folder), 'utf8'), text);
  });
}

test('there is no page but those of the presets, the one for all others, and what makes them', () => {
  const byHand = ['your-own.md', 'generate.ts'];
  assert.deepEqual(readdirSync(folder).toSorted(), [...made.keys(), ...byHand].toSorted());
});

test('links between the pages lead somewhere', () => {
  for (const text of made.values())
    for (const [, link] of text.matchAll(/\]\(([^):]+\.md)\)/g))
      assert.ok(made.has(link!) || existsSync(new URL(link!, folder)), String(link));
});

test('every configuration on a page is accepted, but for the secrets', () => {
  const texts = [...senders.values()].map(configuration);
  texts.push(/```yaml\n([^]*?)```/.exec(readFileSync(new URL('your-own.md', folder), 'utf8'))![1]!);
  for (const text of texts.flatMap((one) => [one, one.replaceAll(/# (replayGuard|elements)/g, '$1')])) {
    const loaded = load(text);
    const complaints = loaded.ok ? [] : loaded.complaints;
    assert.deepEqual(
      complaints.filter((line) => !/(secrets\[0\]|token): file .* cannot be read/.test(line)),
      [],
      text,
    );
  }
});

test('what is told about facts that were not found is told on the page', () => {
  for (const { name, unverified } of senders.values())
    for (const fact of unverified ?? []) assert.ok(made.get(`${name}.md`)!.includes(fact));
});
