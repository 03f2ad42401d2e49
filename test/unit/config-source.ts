/** A configuration without files: its text, and what its references lead to. */
import assert from 'node:assert/strict';
import type { Config } from '../../src/config/config.ts';
import { loadConfig, type Loaded } from '../../src/config/load.ts';
import type { Source } from '../../src/config/secrets.ts';
import type { Sender } from '../../src/core/sender.ts';
import { senders } from '../../src/senders/index.ts';

/** What every reference in these tests may lead to, unless a test says otherwise. */
export const secret = 'x3cr3t-of-the-tests';

/** A sender with habits of round numbers: known in these tests beside the real ones. */
const acme: Sender = {
  ...senders.get('github')!,
  ...{ name: 'acme', title: 'Acme', successStatus: 204, timeLimitMs: 3000 },
  ...{ retryHorizonMs: 3 * 86_400_000, lastRetryMs: 300_000 },
};
const known = new Map([...senders, [acme.name, acme]]);

export interface Around {
  readonly env?: Readonly<Record<string, string>>;
  readonly files?: Readonly<Record<string, string | Buffer>>;
  readonly memoryLimit?: number;
}

export function load(text: string, around: Around = {}): Loaded {
  const source: Source = {
    path: '/etc/hookonce/config.yaml',
    text,
    env: around.env ?? { SECRET: secret },
    readFile: (path) => {
      const content = around.files?.[path];
      if (content === undefined) throw Object.assign(new Error(`ENOENT: ${path}`), { code: 'ENOENT' });
      return Buffer.from(content);
    },
    memoryLimit: around.memoryLimit,
  };
  return loadConfig(source, known);
}

export function accepted(text: string, around?: Around): { config: Config; warnings: readonly string[] } {
  const loaded = load(text, around);
  if (!loaded.ok) assert.fail(loaded.complaints.join('\n'));
  return loaded;
}

export function complaints(text: string, around?: Around): readonly string[] {
  const loaded = load(text, around);
  if (loaded.ok) assert.fail('accepted');
  return loaded.complaints;
}

/** One route that is right; what is given is added to it or replaces it. */
export function route(more = ''): string {
  const own = ['name', 'path', 'sender', 'secrets'].filter((name) => !new RegExp(`(^|, )${name}:`).test(more));
  const all: Record<string, string> = { name: 'github', path: '/github', sender: 'github', secrets: '[{env: SECRET}]' };
  return `{${[...own.map((name) => `${name}: ${all[name]}`), more].filter(Boolean).join(', ')}}`;
}

export const routes = (...more: string[]): string =>
  `routes: [${(more.length === 0 ? [''] : more).map(route).join(', ')}]\n`;

export const nodes = (...urls: string[]): string =>
  `redis: {nodes: [${urls.map((url) => `{url: '${url}'}`).join(', ')}]}\n`;
