/** Dead letters, and what was done about them, for a person or a program to read. */
import type { DeadLetter } from './dead-letters.ts';
import { doneInWords, span, utc } from './in-words.ts';
import type { Counts, Replayed } from './redelivery.ts';

/** Without headers and body. */
export function briefly({ id, delivery, attempts, replays, lastError, diedWallMs, history }: DeadLetter) {
  const { route, key, acceptedWallMs, traceId, body } = delivery;
  const status = history.at(-1)?.status;
  return {
    ...{ id, route, key, acceptedAt: utc(acceptedWallMs), diedAt: utc(diedWallMs), attempts, replays, lastError },
    ...(status !== undefined && { lastStatus: status }),
    ...(traceId !== undefined && { traceId }),
    bytes: body.length,
  };
}

/** With everything but the body. */
export function fully(letter: DeadLetter) {
  const { method, target, headers, peer } = letter.delivery;
  const history = letter.history.map(({ wallMs, ...rest }) => ({ at: utc(wallMs), ...rest }));
  return { ...briefly(letter), method, target, headers, from: peer?.address, history };
}

export function letterInWords(letter: DeadLetter, textOf: (body: Buffer) => string): string {
  const { id, delivery, history, attempts, replays, lastError } = letter;
  const lines = delivery.headers.flatMap((name, i) => (i % 2 === 0 ? [`  ${name}: ${delivery.headers[i + 1]}`] : []));
  return [
    `dead letter  ${id}`,
    `route        ${delivery.route}`,
    `key          ${delivery.key ?? 'none: nothing names the event'}`,
    `accepted     ${utc(delivery.acceptedWallMs)}`,
    `died         ${utc(letter.diedWallMs)}, after ${attempts} attempts${replays > 0 ? `, replayed ${replays} times` : ''}`,
    `last error   ${lastError}`,
    '',
    ...history.map(
      ({ wallMs, attempt, message, tookMs }) => `  ${utc(wallMs)}  attempt ${attempt}: ${message} (${span(tookMs)})`,
    ),
    '',
    `${delivery.method} ${delivery.target}`,
    ...lines,
    '',
    textOf(delivery.body),
  ].join('\n');
}

export function lettersInWords(letters: readonly DeadLetter[], total: number, more: boolean): string {
  if (letters.length === 0) return total === 0 ? 'No dead letters.' : `None of ${total} dead letters matches.`;
  const rows = [
    ['ID', 'ROUTE', 'DIED', 'ATTEMPTS', 'LAST ERROR'],
    ...letters.map((one) => [
      ...[one.id, one.delivery.route, utc(one.diedWallMs)],
      ...[`${one.attempts}${one.replays > 0 ? ` (replayed ${one.replays})` : ''}`, one.lastError.slice(0, 80)],
    ]),
  ];
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((cells) => cells[column]!.length)));
  const table = rows.map((cells) =>
    cells
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join('  ')
      .trimEnd(),
  );
  return [...table, '', `${letters.length} of ${total} dead letters${more ? '; there are more' : ''}.`].join('\n');
}

export function replayedInWords(id: string, replayed: Replayed): string {
  switch (replayed.kind) {
    case 'replayed':
      return `${id}: back in the queue, with all its attempts.`;
    case 'gone':
      return `${id}: no dead letter, or not any more.`;
    case 'done-before':
      return `${id}: not replayed. The event has been done since: ${doneInWords(replayed)}. With force it is done once more.`;
  }
}

export function countsInWords(counts: Counts): string {
  const said = [
    [counts.replayed, 'replayed'],
    [counts.discarded, 'discarded'],
    [counts['done-before'], 'not replayed: done since (with force they are done once more)'],
    [counts.gone, 'gone: somebody else was faster'],
  ] as const;
  const parts = said.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`);
  return parts.length === 0 ? 'Nothing to do.' : `${parts.join('; ')}.`;
}
