/** The checker finds what it is there for, and excuses nothing else. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { History, type Execution, type Summary } from './history.ts';

const limits = { answerMs: 1_000, upstreamMs: 500 };

function ran(attempt: number, startedMs: number, endedMs: number, status = 200, gateway = 0): Execution {
  return { event: 'e', gateway, attempt, startedMs, endedMs, status };
}

function checked(executions: readonly Execution[], prepare: (history: History) => void = () => {}): Summary {
  const history = new History();
  history.executions.push(...executions);
  prepare(history);
  return history.check(limits);
}

test('a success that is followed by another attempt is a double, whatever excused others', () => {
  const two = [ran(1, 0, 10), ran(2, 3_000, 3_010)];
  assert.equal(checked(two).doubles.length, 1);
  assert.equal(
    checked(two, (history) => history.excuse('dead', 1, 0, 5_000)).doubles.length,
    1,
    'another gateway died',
  );
  assert.equal(
    checked(two, (history) => history.excuse('dead', 0, 1_000, 2_000)).doubles.length,
    1,
    'too late to matter',
  );
  assert.equal(checked(two, (history) => history.excuse('dead', 0, 5, 100)).doubles.length, 0);
  assert.equal(checked(two, (history) => history.excuse('forgotten', 'all', 1_000, 2_000)).doubles.length, 0);
});

test('two at the same time are a double, though the first fails later; one after a failure is none', () => {
  assert.equal(checked([ran(1, 0, 100, 500), ran(2, 50, 60)]).doubles.length, 1);
  assert.equal(checked([ran(1, 0, 100, 500), ran(2, 150, 160)]).doubles.length, 0);
});

test('an answer that came too late excuses the next attempt', () => {
  assert.equal(checked([ran(1, 0, 700), ran(2, 650, 660)]).doubles.length, 0);
});

test('attempts have to rise, also where a repetition is excused', () => {
  const excused = (history: History): void => history.excuse('asleep', 0, 0, 2_000);
  assert.equal(checked([ran(1, 0, 10), ran(1, 3_000, 3_010)], excused).unmarked.length, 1);
  assert.equal(checked([ran(1, 0, 10), ran(2, 3_000, 3_010)], excused).unmarked.length, 0);
  assert.equal(
    checked([ran(1, 0, 10), ran(1, 3_000, 3_010)], (history) => history.excuse('forgotten', 'all', 1, 2)).unmarked
      .length,
    0,
  );
});

test('2xx before any success is a loss, and an answer that takes too long is a hang unless its gateway slept', () => {
  const exchange = { event: 'e', gateway: 0, startedMs: 0, endedMs: 5, status: 200, outcome: 'delivered' };
  assert.equal(checked([ran(1, 0, 10)], (history) => history.exchanges.push(exchange)).losses.length, 1);
  assert.equal(checked([ran(1, 0, 4)], (history) => history.exchanges.push(exchange)).losses.length, 0);
  const slow = { ...exchange, status: 503, endedMs: 2_000 };
  assert.equal(checked([], (history) => history.exchanges.push(slow)).hangs.length, 1);
  const asleep = (history: History): void => {
    history.exchanges.push(slow);
    history.excuse('asleep', 0, 100, 200);
  };
  assert.equal(checked([], asleep).hangs.length, 0);
});
