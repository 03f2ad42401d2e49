/** docs/configuration.md, from the schema of the configuration: `node docs/generate-configuration.ts` writes it; a test compares. */
import { writeFileSync } from 'node:fs';
import { configJsonSchema, type JsonSchema } from '../src/config/json-schema.ts';
import { LIVE } from '../src/config/live.ts';
import { senders } from '../src/senders/index.ts';

export function reference(): string {
  const schema = configJsonSchema(senders.keys());
  const properties = Object.entries(schema.properties ?? {}) as [string, JsonSchema][];
  const single = properties.filter(([, one]) => sectionOf(one) === undefined);
  return `${[
    '<!-- Made from src/config by docs/generate-configuration.ts: change it there. -->',
    introduction,
    '## At the top',
    table(single.map(([name, one]) => row(name, name, one))),
    ...properties.flatMap(([name, one]) => {
      const within = sectionOf(one);
      const live = LIVE.includes(name) ? ' All of it is *live*.' : '';
      return within === undefined
        ? []
        : [`## ${name}`, `${one.description ?? ''}${live}`, table(rows(within, name, ''))];
    }),
    relations,
    reloading,
  ].join('\n\n')}\n`;
}

const introduction = `# Configuration

One YAML file: \`--config FILE\`, else \`$HOOKONCE_CONFIG\`, else \`/etc/hookonce/config.yaml\`. Unknown names are errors, and every fault is named at once, with its path, what was found and what is allowed.

- \`hookonce check\` says what is wrong without starting anything; exit code 2.
- \`hookonce schema\` prints the JSON Schema, for editors: \`# yaml-language-server: $schema=./hookonce.schema.json\`.
- Durations and sizes carry their unit: \`300ms\`, \`15s\`, \`5m\`, \`2h\`, \`7d\`; \`512B\`, \`64KiB\`, \`1MiB\`, \`1GiB\`.
- Secrets come by reference only, \`{file: /path}\` or \`{env: NAME}\`. One newline at the end is dropped; an empty secret is an error.
- Relative paths start at the folder of the file.

*live*: taken over by a running gateway as soon as the file changes. Everything else needs a restart, and the gateway says so.`;

const relations = `## Between settings

Checked at the start and at every reload; each message names both settings and their values.

- 2 × \`redis.timeout\` + 50 ms < \`claims.budget\` < \`claims.lockTtl\` / 3: a claim and its confirmation fit into the budget, and the budget leaves most of the lock's life to the application.
- \`upstream.timeout\` + \`claims.budget\` + 1 s ≤ \`claims.lockTtl\`, unless \`claims.relyOnWatchdog: true\`: the lock outlives an ordinary exchange even when its renewal fails.
- \`upstream.timeout\` < \`claims.maxHold\`, \`upstream.headersTimeout\` ≤ \`upstream.timeout\`, \`drain.delay\` < \`drain.grace\`.
- \`redis.nodes\`: 1, 3, 5 or 7, no two the same; with them \`service\` is required.
- A route with \`mode: async\` needs \`queue.url\`, and neither observes nor takes deliveries apart (\`elements\`). \`queue.backoff.first\` ≤ \`queue.backoff.max\`.
- A route has either \`sender\` or \`verify\`; no two routes have the same name or path; \`inFlight.wait\` is shorter than the sender's time limit, and \`retention\` no shorter than the sender retries.
- \`limits.body\`, also that of a route, ≤ \`limits.memory\`; half of it on a route with \`elements\`.

A delivery is answered within \`inFlight.wait\` + 2 × \`claims.budget\` + \`upstream.maxWait\` + \`upstream.timeout\` + 3 × \`redis.timeout\`.`;

const reloading = `## While it runs

The gateway watches the folders of the file and of every secret that it refers to, so that a ConfigMap or Secret that Kubernetes swaps is in use within a second (and within three where the file system tells nothing). Environment variables stay what they were.

- Deliveries that have begun end under the configuration they began with, also those of a route that is gone.
- A file with faults is refused as a whole: what ran goes on, \`hookonce_config_last_reload_successful\` is 0, and the log names the file and all that is wrong with it. The same is true when the file, or a secret that it refers to, is missing.
- What only a restart brings stays as it was; the log names these settings, and \`hookonce_config_restart_needed\` is 1 until they are gone from the file or the gateway has started anew. \`claims.retention\` counts at once for routes without one of their own.
- A mount with \`subPath\` is never swapped by Kubernetes: mount the folder.

**Rotating a secret without a 401.** List both references, \`secrets: [{file: …/new}, {file: …/old}]\`. Write the new secret into one file and the one in use into the other; once \`hookonce_config_last_reload_timestamp_seconds\` has moved, give the new one to the sender. \`hookonce_secret_used_total{route,secret}\` counts the deliveries that each of them signed; when the old one's counter has stood still for as long as the sender retries, take it out. Its label is the last part of the reference, never the secret.

**Trying a route out.** With \`observe: true\` nothing is stopped: claims are taken and completed as usual, and what would have been stopped (\`duplicate\`, \`in-progress\`, \`rejected\`, \`unavailable\`, \`handshake\`) is forwarded with \`Hookonce-Observed: <outcome>\` instead of \`Hookonce-Attempt\`, without waiting; the application's answer goes to the sender. \`hookonce_observed_total{route,outcome}\` counts. That includes deliveries whose signature does not hold, so the application must verify for itself. Limits of size, memory and number hold all the same.`;

interface Row {
  readonly setting: string;
  readonly given: string;
  readonly doc: string;
}

/** The mapping that a section is, or that each entry of a list is. */
function sectionOf(one: JsonSchema): JsonSchema | undefined {
  if (one.properties !== undefined) return one;
  const items = one.items as JsonSchema | undefined;
  return items?.properties === undefined || isReference(items) ? undefined : items;
}

/** `{file: …}` or `{env: …}`, which is explained once. */
const isReference = (one: JsonSchema): boolean => Object.keys(one.properties ?? {}).join() === 'file,env';

/** A setting, and what is inside of it. `path`: in the file; `shown`: from its section on. */
function rows(within: JsonSchema, path: string, shown: string): Row[] {
  const required = new Set(within.required);
  return (Object.entries(within.properties ?? {}) as [string, JsonSchema][]).flatMap(([name, one]) => {
    const here = row(`${path}.${name}`, `${shown}${name}`, one, required.has(name));
    const inner = isReference(one) ? undefined : sectionOf(one);
    if (inner === undefined) return [here];
    return [here, ...rows(inner, `${path}.${name}`, `${shown}${name}${one.items === undefined ? '' : '[]'}.`)];
  });
}

function row(path: string, shown: string, one: JsonSchema, required = false): Row {
  const live = LIVE.includes(path);
  const allowed = allowedIn(one);
  const doc = [one.description ?? '', ...(allowed === '' ? [] : [`${allowed}.`]), ...(live ? ['*live*'] : [])].join(
    ' ',
  );
  return { setting: `\`${shown}\``, given: required ? '**required**' : defaultOf(one), doc };
}

function defaultOf({ default: given, properties }: JsonSchema): string {
  if (given === undefined || properties !== undefined) return '';
  return `\`${typeof given === 'string' && given !== '' ? given : JSON.stringify(given)}\``;
}

function allowedIn(one: JsonSchema): string {
  if (isReference(one)) return 'A reference';
  const items = one.items as JsonSchema | undefined;
  if (items !== undefined && isReference(items)) return 'A list of references';
  if (one.enum !== undefined)
    return one.enum.length > 10
      ? 'One of [these](senders/README.md)'
      : one.enum.map((value) => `\`${String(value)}\``).join(', ');
  if (one.type === 'integer') return `${one.minimum} to ${one.maximum}`;
  if (one.pattern?.includes('(ms|s|m|')) return one.pattern.includes('off') ? 'A duration, or `off`' : 'A duration';
  if (one.pattern?.includes('|KiB|')) return 'A size';
  const examples = (one.examples ?? []) as unknown[];
  const strings = examples.filter((example) => typeof example === 'string' && example !== one.default);
  return strings.length === 0 ? '' : `Such as ${strings.map((example) => `\`${String(example)}\``).join(', ')}`;
}

function table(all: readonly Row[]): string {
  const lines = all.map(
    ({ setting, given, doc }) => `| ${[setting, given, doc].map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`,
  );
  return ['| setting | default | |', '| --- | --- | --- |', ...lines].join('\n');
}

if (import.meta.main) writeFileSync(new URL('configuration.md', import.meta.url), reference());
