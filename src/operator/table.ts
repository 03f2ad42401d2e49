/** An explanation as a person reads it. */
import { doneInWords, forecastInWords, span } from '../core/in-words.ts';
import type { GivenEvent } from '../core/given-ids.ts';
import type { Explanation, VoterView } from '../core/operator.ts';

export function table(event: GivenEvent, { voters, forecast }: Explanation): string {
  const { route, key, named } = event;
  const rows = [['NODE', 'ANSWER', 'LOCK', 'RECORD', 'BOOT'], ...voters.map(row)];
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((cells) => cells[column]!.length)));
  return [
    `route  ${route.name} (${route.path}, sender ${route.sender})`,
    `key    ${key.id}`,
    ...named.map((part) => `by     ${part}`),
    '',
    ...rows.map((cells) =>
      cells
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join('  ')
        .trimEnd(),
    ),
    '',
    forecastInWords(forecast, route),
  ].join('\n');
}

function row(view: VoterView): string[] {
  if (view.answer === 'none') return [view.node, `none: ${view.why}`, '-', '-', '-'];
  const { node, answer, hold, boot, lock, record } = view;
  const held = lock && `${lock.holder}… ${span(lock.leftMs)}${lock.unknown ? ', outcome unknown' : ''}`;
  const known = record && [
    `attempt ${record.attempt}`,
    ...(record.floor > 0 ? [`forgotten up to ${record.floor}`] : []),
    ...(record.done ? [doneInWords(record.done)] : []),
    `kept ${span(record.leftMs)}`,
  ];
  return [node, hold === '' ? answer : `${answer}, on hold: ${hold}`, held ?? '-', known?.join(', ') ?? '-', boot];
}
