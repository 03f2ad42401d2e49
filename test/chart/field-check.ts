/**
 * Unknown and ill-typed fields: every object becomes a literal of its TypeScript type, and the compiler says what does
 * not fit. (Validators of JSON Schema let unknown fields pass.)
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root, runTool } from '../setup/tool.ts';
import type { KubeObject } from './helm.ts';

const operator = '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1';

function moduleOf({ apiVersion }: KubeObject): string {
  return apiVersion === 'monitoring.coreos.com/v1' ? operator : `kubernetes-models/${apiVersion}`;
}

/** What the compiler complains of; each complaint names the object's kind and the field. */
export async function typeComplaints(objects: readonly KubeObject[]): Promise<string> {
  const kinds = new Map(objects.map((object) => [`${moduleOf(object)} ${object.kind}`, object]));
  const alias = (object: KubeObject) => `${object.kind}Of${moduleOf(object).replace(/\W/g, '_')}`;
  const imports = [...kinds.values()].map(
    (object) => `import type { I${object.kind} as ${alias(object)} } from '${moduleOf(object)}';`,
  );
  const literals = [
    ...new Set(objects.map((object) => `: ${alias(object)} = ${JSON.stringify(object, undefined, 1)};`)),
  ];
  mkdirSync(join(root, '.tmp'), { recursive: true });
  const folder = mkdtempSync(join(root, '.tmp/types-'));
  try {
    const text = [...imports, ...literals.map((literal, i) => `export const o${i}${literal}`)].join('\n');
    writeFileSync(join(folder, 'objects.ts'), text);
    const options = { strict: true, noEmit: true, skipLibCheck: true, module: 'nodenext', target: 'esnext', types: [] };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: options, files: ['objects.ts'] }));
    const { stdout } = await runTool(['tsc', '-p', folder, '--pretty', 'false']);
    return stdout;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
