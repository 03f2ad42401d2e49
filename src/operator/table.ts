/** An explanation as a person reads it. */
import { doneInWords, span, summaryInWords } from '../core/in-words.ts';
import type { GivenEvent } from '../core/given-ids.ts';
import { leadsTo } from '../core/leads.ts';
import type { Explanation, LedgerView, LockView, RecordView, VoterView } from '../core/operator.ts';

export function table(event: GivenEvent, explanation: Explanation): string {
  const { voters, ledger } = explanation;
  const { route, key, named } = event;
  const { grep, loki, traceId } = leadsTo(key, explanation);
  const rows = [
    ['NODE', 'ANSWER', 'LOCK', 'RECORD', 'BOOT'],
    ...voters.map(row),
    ...(ledger ? [ledgerRow(ledger)] : []),
  ];
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
    `logs   ${grep}, in Loki ${loki}`,
    ...(traceId === undefined ? [] : [`trace  ${traceId}`]),
    '',
    summaryInWords(explanation, route),
  ].join('\n');
}

function row(view: VoterView): string[] {
  if (view.answer === 'none') return [view.node, `none: ${view.why}`, '-', '-', '-'];
  const { node, answer, hold, boot, lock, record } = view;
  return [node, hold === '' ? answer : `${answer}, on hold: ${hold}`, heldInWords(lock), knownInWords(record), boot];
}

function ledgerRow(view: LedgerView): string[] {
  if (!('record' in view)) return ['ledger', view.answer === 'none' ? 'none: no answer' : view.answer, '-', '-', '-'];
  return ['ledger', view.answer, heldInWords(view.lock), knownInWords(view.record), '-'];
}

function heldInWords(lock: LockView | undefined): string {
  return lock ? `${lock.holder}… ${span(lock.leftMs)}${lock.unknown ? ', outcome unknown' : ''}` : '-';
}

function knownInWords(record: RecordView | undefined): string {
  if (!record) return '-';
  const said = [
    `attempt ${record.attempt}`,
    ...(record.floor > 0 ? [`forgotten up to ${record.floor}`] : []),
    ...(record.done ? [doneInWords(record.done)] : []),
    `kept ${span(record.leftMs)}`,
  ];
  return said.join(', ');
}
