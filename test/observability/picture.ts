/**
 * The picture of the dashboard in the README: `node test/observability/picture.ts` plays some minutes of traffic with
 * faults before real gateways, has a real Prometheus watch them, and draws what it answers to the panels' queries.
 */
import { launch } from 'puppeteer-core';
import { systemClock } from '../../src/clock.ts';
import { answer } from '../support/application.ts';
import { asked, dashboard, type GrafanaPanel } from './dashboard-file.ts';
import { page, type Drawn } from './picture-page.ts';
import type { Prometheus } from './prometheus.ts';
import { startStage, type Stage } from './stage.ts';

const CAPTION =
  'Drawn by a small page, not by Grafana: the panels and queries of the dashboard, answered by a Prometheus that scraped two gateways under traffic with faults.';

/** PNG of the rows with these titles, over the last `seconds`. */
export async function picture(prometheus: Prometheus, titles: readonly string[], seconds: number): Promise<Uint8Array> {
  const rows = rowsOf(titles);
  const drawn = await Promise.all(
    rows
      .flatMap(({ inside }) => inside)
      .map(async (panel): Promise<Drawn> => ({ panel, answers: await ask(prometheus, panel, seconds) })),
  );
  const html = page(
    drawn,
    rows.map(({ head }) => head),
    CAPTION,
  );
  const browser = await launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] });
  try {
    const tab = await browser.newPage();
    await tab.setViewport({ width: 1456, height: 800 });
    await tab.setContent(html);
    return await tab.screenshot({ fullPage: true });
  } finally {
    await browser.close();
  }
}

interface RowOf {
  readonly head: GrafanaPanel;
  readonly inside: readonly GrafanaPanel[];
}

/** Moved together, as if there were no others. */
function rowsOf(titles: readonly string[]): RowOf[] {
  let y = 0;
  return titles.map((title) => {
    const at = dashboard.panels.findIndex((panel) => panel.type === 'row' && panel.title === title);
    const head = dashboard.panels[at]!;
    const after = dashboard.panels.slice(at + 1);
    const next = after.findIndex((panel) => panel.type === 'row');
    // A folded row holds its panels; of others they follow it.
    const inside = head.panels?.length ? head.panels : after.slice(0, next === -1 ? after.length : next);
    const by = y - head.gridPos.y;
    const moved = [head, ...inside].map((panel) => ({
      ...panel,
      gridPos: { ...panel.gridPos, y: panel.gridPos.y + by },
    }));
    y = Math.max(...moved.map(({ gridPos }) => gridPos.y + gridPos.h));
    return { head: moved[0]!, inside: moved.slice(1) };
  });
}

async function ask(prometheus: Prometheus, { targets = [] }: GrafanaPanel, seconds: number): Promise<Drawn['answers']> {
  const step = Math.max(1, Math.round(seconds / 120));
  return await Promise.all(
    targets.map(async (target) => ({
      target,
      series: await prometheus.queryRange(asked(target.expr, '15s', `${seconds}s`), seconds, step),
    })),
  );
}

/** Some minutes in the life of a shop. */
async function play(stage: Stage, seconds: number): Promise<void> {
  const seen: string[] = [];
  const begunMs = systemClock.now();
  const at = (from: number, to: number): boolean => {
    const passed = (systemClock.now() - begunMs) / 1000 / seconds;
    return passed >= from && passed < to;
  };
  let voter: 'up' | 'down' = 'up';
  for (let n = 0; at(0, 1); n++) {
    if (at(0.25, 0.4) && voter === 'up') [voter] = ['down', await stage.voters[1]!.kill()];
    if (at(0.4, 1) && voter === 'down') [voter] = ['up', await stage.voters[1]!.start()];
    stage.application.otherwise(at(0.6, 0.72) && n % 3 === 0 ? answer(500) : answer(200));
    const fresh = Array.from({ length: 4 }, (_, i) => `evt-${n}-${i}`);
    seen.push(...fresh);
    // A sender that repeats itself, most of all in a storm.
    const again = Array.from(
      { length: at(0.78, 0.88) ? 12 : 2 },
      () => seen[Math.floor(systemClock.random() * seen.length)]!,
    );
    await Promise.all([
      ...[...fresh, ...again].map((id) => stage.deliver('/sync', id)),
      stage.deliver('/jobs', `job-${n}`),
      stage.deliver('/open', `open-${n}`),
      ...(n % 7 === 0 ? [stage.deliver('/sync', `forged-${n}`, 'another-secret')] : []),
    ]);
    await systemClock.sleep(180);
  }
}

if (import.meta.main) {
  const { writeFile } = await import('node:fs/promises');
  await using stage = await startStage();
  const seconds = 240;
  await play(stage, seconds);
  await stage.prometheus.scraped();
  const png = await picture(stage.prometheus, ['Are events handled once?', 'Traffic', 'Voters'], seconds);
  await writeFile(new URL('../../docs/dashboard/dashboard.png', import.meta.url), png);
}
