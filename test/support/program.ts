import { fileURLToPath } from 'node:url';
import type { Program } from '../../src/demo/gateway.ts';

/** This program from its sources, run by the Node that runs the tests. */
export const program: Program = {
  node: process.execPath,
  entry: fileURLToPath(new URL('../../src/main.ts', import.meta.url)),
};
