import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { startChild, type Child } from '../../src/demo/child.ts';
import { exchange } from '../../src/demo/exchange.ts';
import { program } from '../support/program.ts';

const startDemo = (env = process.env): Child => startChild(program.node, [program.entry, 'demo'], { env });

async function assertRefused(url: string): Promise<void> {
  await assert.rejects(exchange(url), { code: 'ECONNREFUSED' });
}

suite('hookonce demo', { concurrency: true }, () => {
  test('loses nothing, handles nothing twice, and leaves nothing running', async () => {
    await using demo = startDemo();
    const running = await demo.line(/^While it runs/);
    const metrics = running.match(/http:\S+/g) ?? [];
    assert.equal(metrics.length, 2);
    for (const url of metrics) {
      assert.match((await exchange(url)).body.toString(), /^hookonce_deliveries_total\{/m);
    }

    assert.deepEqual(await demo.exited, { code: 0, signal: null });
    const output = demo.lines.join('\n');
    assert.match(output, /Three redis-servers/);
    assert.match(output, /frozen/);
    assert.match(output, /^  lost +0$/m);
    assert.match(output, /^  handled twice +0$/m);
    assert.match(output, /^  duplicates stopped +[1-9]\d* +[1-9]\d* waited for the first, /m);
    for (const url of metrics) await assertRefused(url);
  });

  test('runs without redis-server, and says so', async () => {
    await using demo = startDemo({ ...process.env, PATH: '/nonexistent' });
    assert.deepEqual(await demo.exited, { code: 0, signal: null });
    assert.match(demo.lines.join('\n'), /redis-server is not installed: one gateway with its embedded voter/);
  });

  test('an interrupt stops it and everything that it started', async () => {
    await using demo = startDemo();
    const nodes = await demo.line(/^Three redis-servers/);
    const ports = nodes.match(/\d{4,5}/g) ?? [];
    assert.equal(ports.length, 3);
    await demo.line(/^A storm/);
    demo.signal('SIGINT');
    assert.deepEqual(await demo.exited, { code: 1, signal: null });
    for (const port of ports) await assertRefused(`http://127.0.0.1:${port}/`);
  });
});
