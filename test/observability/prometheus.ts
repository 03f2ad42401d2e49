/** A real Prometheus that scrapes gateways every second, as it would the pods of a namespace. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { systemClock } from '../../src/clock.ts';
import { startChild } from '../../src/demo/child.ts';
import { exchange } from '../../src/demo/exchange.ts';
import { freePort } from '../../src/demo/free-port.ts';
import type { Gateway } from '../../src/demo/gateway.ts';
import { until } from '../../src/demo/until.ts';

export interface Sample {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Series {
  readonly metric: Readonly<Record<string, string>>;
  /** Seconds since 1970, and value. */
  readonly values: readonly (readonly [number, number])[];
}

export interface Prometheus extends AsyncDisposable {
  /** Now. Throws when Prometheus does not understand it. */
  query(expr: string): Promise<Sample[]>;
  /** From `seconds` ago until now. */
  queryRange(expr: string, seconds: number, step: number): Promise<Series[]>;
  /** Resolves when every gateway that answers has been scraped twice more. */
  scraped(): Promise<void>;
}

/** `gateways` by the name of their pod. */
export async function startPrometheus(gateways: Readonly<Record<string, Gateway>>): Promise<Prometheus> {
  await using starting = new AsyncDisposableStack();
  const dir = await mkdtemp(join(tmpdir(), 'hookonce-prometheus-'));
  starting.defer(async () => await rm(dir, { recursive: true, force: true }));
  const static_configs = Object.entries(gateways).map(([pod, { adminUrl }]) => ({
    targets: [new URL(adminUrl).host],
    labels: { namespace: 'shop', pod },
  }));
  const config = {
    global: { scrape_interval: '1s', scrape_timeout: '1s' },
    scrape_configs: [{ job_name: 'hookonce', static_configs }],
  };
  await writeFile(join(dir, 'prometheus.yml'), stringify(config));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const child = starting.use(
    startChild(
      'prometheus',
      [
        '--config.file=prometheus.yml',
        '--storage.tsdb.path=data',
        `--web.listen-address=127.0.0.1:${port}`,
        '--query.lookback-delta=5s',
      ],
      { cwd: dir },
    ),
  );
  const ask = async <T>(path: string, parameters: Readonly<Record<string, string>>): Promise<T[]> => {
    const { body } = await exchange(`${url}/api/v1/${path}?${new URLSearchParams(parameters).toString()}`);
    const answer = JSON.parse(body.toString()) as { status: string; error?: string; data: { result: T[] } };
    if (answer.status !== 'success') throw new Error(`${answer.error}: ${parameters['query']}`);
    return answer.data.result;
  };
  const query = async (expr: string): Promise<Sample[]> => {
    const found = await ask<{ metric: Sample['metric']; value: [number, string] }>('query', { query: expr });
    return found.map(({ metric, value }) => ({ metric, value: Number(value[1]) }));
  };
  await until(systemClock, 'Prometheus', async () => {
    if (!child.running()) throw new Error(child.lines.slice(-5).join('\n'));
    return (await exchange(`${url}/-/ready`)).status === 200 ? true : undefined;
  });

  const stack = starting.move();
  const prometheus: Prometheus = {
    query,
    async queryRange(expr, seconds, step) {
      const end = systemClock.wall() / 1000;
      const times = { start: String(end - seconds), end: String(end), step: String(step) };
      const found = await ask<{ metric: Series['metric']; values: [number, string][] }>('query_range', {
        ...{ query: expr, ...times },
      });
      return found.map(({ metric, values }) => ({ metric, values: values.map(([at, value]) => [at, Number(value)]) }));
    },
    async scraped() {
      const now = systemClock.wall() / 1000;
      // What is scraped from now on: the second scrape is later than the first by the interval.
      await until(systemClock, 'two scrapes', async () => {
        const times = await query('timestamp(hookonce_build_info)');
        return times.length === static_configs.length && times.every(({ value }) => value > now + 1) ? true : undefined;
      });
    },
    [Symbol.asyncDispose]: async () => await stack.disposeAsync(),
  };
  await prometheus.scraped();
  return prometheus;
}
