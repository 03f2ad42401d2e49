/** The page about the queue, as HTTP has it and as a browser shows it. */
import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { launch as launchBrowser, type Browser } from 'puppeteer-core';
import { systemClock as clock } from '../../src/clock.ts';
import { exchange } from '../../src/demo/exchange.ts';
import { until } from '../../src/demo/until.ts';
import { answer } from '../support/application.ts';
import { startAsyncCluster, type AsyncCluster } from '../support/async.ts';
import { secrets } from '../support/config.ts';
import { github } from '../support/deliveries.ts';

const CHROMIUM = '/usr/bin/chromium';
const api = '/-/queue/api/queues';
const NAME = encodeURIComponent('payments/orders');
const basic = `Basic ${Buffer.from(`anybody:${secrets.admin}`).toString('base64')}`;

suite('the page about the queue', () => {
  let cluster: AsyncCluster;
  const ask = async (method: string, path: string, ...headers: string[]) => {
    const {
      status,
      body,
      headers: answered,
    } = await exchange(cluster.gateways[0]!.adminUrl + path, { method, headers });
    return { status, text: body.toString(), headers: answered };
  };
  const dead = async (count: number): Promise<void> => {
    await until(clock, 'dead letters', async () => ((await cluster.depth('dead')) === count ? true : undefined));
  };

  before(async () => {
    cluster = await startAsyncCluster({
      ...{ nodes: 1, gateways: 1 },
      queue: { page: true, attempts: 1 },
      settings: { service: 'payments/orders', admin: { token: { file: './admin.secret' } } },
    });
    cluster.application.otherwise(answer(500));
    for (const n of [1, 2, 3]) await cluster.post(0, '/github', github(`page-${n}`, `{"secret":"in-the-body-${n}"}`));
    await dead(3);
  });
  after(async () => await cluster[Symbol.asyncDispose]());

  const idOf = async (n: number): Promise<string> => {
    const { text } = await ask('GET', `${api}?activeQueue=${NAME}&status=failed&page=1&jobsPerPage=10`);
    return (JSON.parse(text) as { queues: { jobs: { id: string }[] }[] }).queues[0]!.jobs[n]!.id;
  };

  test('shows jobs to everybody, without body and headers, and fetches nothing from elsewhere', async () => {
    const page = await ask('GET', '/-/queue/');
    assert.equal(page.status, 200);
    assert.match(String(page.headers), /default-src 'self'/);
    const jobs = await ask('GET', `${api}?activeQueue=${NAME}&status=failed&page=1&jobsPerPage=10`);
    assert.match(jobs.text, /"route":"github"/);
    assert.doesNotMatch(jobs.text, /in-the-body|signature|"headers"/i);
    const id = await idOf(0);
    assert.doesNotMatch((await ask('GET', `${api}/${NAME}/${id}`)).text, /in-the-body|signature|"headers"/i);
  });

  test('changes nothing without the token, and with it only what loses nothing', async () => {
    const id = await idOf(0);
    assert.equal((await ask('PUT', `${api}/${NAME}/${id}/retry`)).status, 401);
    assert.equal((await ask('PUT', `${api}/${NAME}/${id}/retry`, 'Authorization', 'Bearer wrong')).status, 401);
    for (const path of [
      `${api}/${NAME}/empty`,
      `${api}/${NAME}/obliterate`,
      `${api}/${NAME}/add`,
      `${api}/${NAME}/${id}/update-data`,
    ])
      assert.equal((await ask('PUT', path, 'Authorization', basic)).status, 403, path);
    const foreign = ['Authorization', basic, 'Sec-Fetch-Site', 'cross-site'];
    assert.equal((await ask('PUT', `${api}/${NAME}/${id}/retry`, ...foreign)).status, 403);
    assert.equal(cluster.application.visits.length, 3);
  });

  test('a retry on it is a replay', async () => {
    cluster.application.otherwise(answer(200));
    const id = await idOf(0);
    const { status } = await ask('PUT', `${api}/${NAME}/${id}/retry`, 'Authorization', `Bearer ${secrets.admin}`);
    assert.equal(status, 204);
    await dead(2);
    assert.equal(cluster.application.visits.length, 4);
    assert.equal(cluster.application.visits.at(-1)!.attempt, 2);
  });

  test('in a browser: read-only first; unlocked, a click replays what is dead', async () => {
    await using chromium = await launch();
    const { adminUrl } = cluster.gateways[0]!;
    const page = await chromium.browser.newPage();
    const outside: string[] = [];
    const errors: string[] = [];
    page.on('request', (request) => {
      if (!request.url().startsWith(adminUrl) && !request.url().startsWith('data:')) outside.push(request.url());
    });
    page.on('pageerror', (error) => errors.push(String(error)));
    const failed = `${adminUrl}/-/queue/queue/${NAME}?status=failed`;
    await page.goto(failed, { waitUntil: 'networkidle0' });
    await page.waitForFunction(`document.body.textContent.includes('answered 500')`, { timeout: 20_000 });
    assert.equal(await page.evaluate(`document.body.textContent.includes('Retry all')`), false, 'read-only');

    await page.authenticate({ username: 'anybody', password: secrets.admin });
    await page.goto(`${adminUrl}/-/queue/unlock`, { waitUntil: 'networkidle0' });
    await page.goto(failed, { waitUntil: 'networkidle0' });
    await page.waitForFunction(`document.body.textContent.includes('answered 500')`, { timeout: 20_000 });
    assert.equal(await page.evaluate(CLICK_RETRY), '');
    await until(clock, 'a dialog or the replay', async () => {
      if ((await cluster.depth('dead')) < 2) return true;
      await page.evaluate(CONFIRM);
      return undefined;
    });
    await dead(0);
    assert.deepEqual(errors, []);
    assert.deepEqual(
      outside.filter((url) => !url.startsWith('https://fonts.')),
      [],
      'what it wants from elsewhere',
    );
  });
});

/** In the page: presses the button that retries all that is dead; says what there is instead. */
const CLICK_RETRY = `(() => {
  const named = (one) => [one.title, one.ariaLabel, one.textContent].join(' ');
  const buttons = [...document.querySelectorAll('button')];
  const button = buttons.find((one) => /retry all/i.test(one.textContent));
  button?.click();
  return button ? '' : buttons.map(named).join(' | ');
})()`;
/** In the page: says yes, should it ask. */
const CONFIRM = `(() => {
  const buttons = [...document.querySelectorAll('[role="dialog"] button, [role="alertdialog"] button')];
  buttons.find((one) => /confirm|yes|retry/i.test(one.textContent))?.click();
})()`;

async function launch(): Promise<{ browser: Browser } & AsyncDisposable> {
  const browser = await launchBrowser({
    executablePath: CHROMIUM,
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
  });
  return { browser, [Symbol.asyncDispose]: async () => await browser.close() };
}
