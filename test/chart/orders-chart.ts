/** The application's own chart of this folder, with the library chart as its dependency. */
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../setup/tool.ts';
import { run, the, type KubeObject } from './helm.ts';

export interface OrdersChart extends Disposable {
  /** To be rendered; its dependency is in place. */
  readonly path: string;
}

export async function ordersChart(): Promise<OrdersChart> {
  const folder = mkdtempSync(join(tmpdir(), 'hookonce-orders-'));
  const path = join(folder, 'orders');
  cpSync(join(import.meta.dirname, 'orders'), path, { recursive: true });
  cpSync(join(root, 'charts/hookonce-lib'), join(folder, 'hookonce-lib'), { recursive: true });
  const { ok, text } = await run('helm4', ['dependency', 'build', path]);
  assert.ok(ok, text);
  return { path, [Symbol.dispose]: () => rmSync(folder, { recursive: true }) };
}

export function templateOf(from: readonly KubeObject[], deployment: string): KubeObject {
  return the('Deployment', from, deployment).spec.template;
}

export function sidecarOf(podSpec: KubeObject): KubeObject {
  return podSpec.initContainers.find(({ name }: KubeObject) => name === 'hookonce');
}
