/**
 * `npm run build`: bundles src/main.ts into dist/main.js, which needs nothing but Node. What is loaded by `import()`
 * goes into files of its own, so that it costs memory only where it is used.
 */
import { cp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { build as bundle } from 'esbuild';

/**
 * First lines of every file. CommonJS packages ask for Node's own modules by `require`, which an ES module does not
 * have; and a Node that is too old says so, before some package fails on what it lacks.
 */
const BANNER = `import{createRequire as __cr}from'node:module';const require=__cr(import.meta.url);
if(parseInt(process.versions.node)<22){console.error('hookonce needs Node 22.19 or newer');process.exit(2)}`;

/** Empties `outdir` and builds into it. Rejects, having printed why, when the sources do not bundle. */
export async function build(outdir: string): Promise<void> {
  await rm(outdir, { recursive: true, force: true });
  await bundle({
    absWorkingDir: import.meta.dirname,
    entryPoints: ['src/main.ts'],
    outdir,
    chunkNames: 'chunks/[name]-[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node22.19',
    banner: { js: BANNER },
    // Names stay, for stack traces; what is left out is 2 MB less to keep in memory.
    minifySyntax: true,
    minifyWhitespace: true,
    sourcemap: 'linked',
    sourcesContent: false,
    legalComments: 'linked',
    logLevel: 'warning',
  });
  // What the page about the queue shows; `queue/page.ts` looks for it beside the chunks.
  await cp(join(import.meta.dirname, 'node_modules/@bull-board/ui/dist'), join(outdir, 'queue-page/dist'), {
    recursive: true,
  });
  // The folder works wherever it is copied to.
  await writeFile(join(outdir, 'package.json'), '{ "type": "module" }\n');
}

if (import.meta.main) await build(join(import.meta.dirname, 'dist'));
