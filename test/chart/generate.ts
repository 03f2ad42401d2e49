/**
 * `npm run charts`: writes what follows from other files. The schema of values comes from values.yaml and from the
 * gateway's own configuration schema, the tables of the READMEs from the comments in values.yaml, hookonce-lib's list of
 * settings that need no restart from the gateway's, the copies of hookonce-lib from the chart itself (a chart that is
 * installed from a clone has its dependency beside it), and the component's patch from the plain one.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { configJsonSchema, type JsonSchema } from '../../src/config/json-schema.ts';
import { LIVE } from '../../src/config/live.ts';
import { senders } from '../../src/senders/index.ts';
import { root } from '../setup/tool.ts';
import { settingsOf, type Setting } from './values-file.ts';

const charts = ['charts/hookonce', 'charts/hookonce-injector'];

/** Kustomize takes a patch only with a name, which it then does not look at. */
const patchHead = 'apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: any\n';

/** The settings that gateways take up while they run. */
const live = 'charts/hookonce-lib/templates/_live.tpl';
const liveTemplate = `{{/* Generated from src/config/live.ts (npm run charts). */}}\n{{- define "hookonce-lib.live" -}}\n${LIVE.join(' ')}\n{{- end }}\n`;

/** Every generated file, by its path in the repository, as it should be. */
export function generated(): Map<string, string> {
  return new Map([
    ...charts.flatMap((chart): [string, string][] => {
      const settings = settingsOf(read(`${chart}/values.yaml`));
      return [
        [`${chart}/values.schema.json`, `${JSON.stringify(schemaOf(settings), null, 2)}\n`],
        [`${chart}/README.md`, withTable(read(`${chart}/README.md`), settings)],
        ...libraryFiles().map(([file, text]): [string, string] => [`${chart}/${file}`, text]),
      ];
    }),
    [live, liveTemplate],
    ['k8s/components/sidecar/patch.yaml', patchHead + read('k8s/patch.yaml').replace(/^#.*\n/, '')],
  ]);
}

function libraryFiles(): [string, string][] {
  const written = filesBelow('charts/hookonce-lib').filter((file) => file !== live);
  return [...written.map((file): [string, string] => [file, read(file)]), [live, liveTemplate]];
}

/** What lies where only generated files belong. */
export function dependencies(): string[] {
  return charts.flatMap((chart) => filesBelow(`${chart}/charts`));
}

/** Strict: a name that is not in values.yaml is an error. */
function schemaOf(settings: readonly Setting[]): object {
  const children = (parent: string) =>
    settings.filter(({ path }) => path.slice(0, Math.max(0, path.lastIndexOf('.'))) === parent);
  const mapping = (parent: string): object => ({
    type: 'object',
    additionalProperties: false,
    properties: Object.fromEntries(
      children(parent).map((one) => [one.path.slice(parent.length).replace('.', ''), of(one)]),
    ),
  });
  const of = (setting: Setting): object => ({
    ...(setting.doc !== '' && { description: setting.doc.replaceAll('`', '') }),
    ...kindOf(setting, () => mapping(setting.path)),
  });
  const whole = mapping('') as { properties: object };
  const others = { global: { type: 'object' }, 'hookonce-lib': { type: 'object' } };
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    ...whole,
    properties: { ...whole.properties, ...others },
  };
}

function kindOf({ value, marks, path }: Setting, strict: () => object): object {
  if (marks.has('config')) return configuration();
  if (marks.has('enum')) return { enum: marks.get('enum')!.split(' ') };
  if (Array.isArray(value)) return { type: 'array' };
  if (typeof value === 'string' || typeof value === 'boolean') return { type: typeof value };
  if (typeof value === 'number') return { type: 'integer', minimum: 0 };
  if (value === null) throw new Error(`${path} has no default, so its type is unknown`);
  return marks.has('free') || Object.keys(value as object).length === 0 ? { type: 'object' } : strict();
}

/** As the gateway reads it; but pods have ports with numbers, and that there are routes is said by the templates. */
function configuration(): object {
  const { $schema: _, title: __, ...schema } = configJsonSchema(senders.keys());
  const { listen, admin, routes, queue, ledger } = schema.properties as Record<
    'listen' | 'admin' | 'routes' | 'queue' | 'ledger',
    JsonSchema
  >;
  for (const { properties } of [listen, admin]) Object.assign(properties!['port']!, { minimum: 1 });
  delete routes.minItems;
  // Where the queue and the ledger are follows from other values.
  delete queue.required;
  delete ledger.required;
  return schema;
}

function withTable(readme: string, settings: readonly Setting[]): string {
  const rows = settings
    .filter(({ value, doc, marks }) => doc !== '' || marks.has('free') || !isGroup(value))
    .filter(({ path }) => !settings.some((parent) => parent.marks.has('free') && path.startsWith(`${parent.path}.`)))
    .map((setting) => `| \`${setting.path}\` | ${defaultOf(setting)} | ${docOf(setting)} |`);
  const table = ['| value | default | |', '| --- | --- | --- |', ...rows].join('\n');
  const [before, after] = [readme.split('<!-- values -->')[0], readme.split('<!-- /values -->')[1]];
  if (before === undefined || after === undefined)
    throw new Error('README.md lacks the marks around its table of values');
  return `${before}<!-- values -->\n${table}\n<!-- /values -->${after}`;
}

function isGroup(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length > 0;
}

function defaultOf({ value, marks }: Setting): string {
  if (marks.has('free')) return 'see values.yaml';
  return isGroup(value) ? '' : `\`${JSON.stringify(value)}\``;
}

function docOf({ doc, marks }: Setting): string {
  const choices =
    marks
      .get('enum')
      ?.split(' ')
      .map((one) => `\`${one}\``) ?? [];
  const told = choices.every((one) => doc.includes(one));
  return [doc, ...(told ? [] : [choices.join(', ')])].filter(Boolean).join('; ').replaceAll('|', '\\|');
}

function filesBelow(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .sort();
}

function read(file: string): string {
  return readFileSync(join(root, file), 'utf8');
}

if (import.meta.main) {
  for (const [file, text] of generated()) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), text);
  }
}
