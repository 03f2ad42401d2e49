/** Items and answers as a trace shows them. */
import type { Answer, Item } from '../../src/redis/items.ts';

export function spoken(item: Item, answer: Answer, held: boolean): string {
  return `${itemSpoken(item)}: ${answerSpoken(answer)}${held ? ' (on hold)' : ''}`;
}

function itemSpoken(item: Item): string {
  const token = 'token' in item ? ` ${item.token.slice(0, 4)}` : '';
  const attempt = 'attempt' in item ? ` attempt ${item.attempt}` : '';
  const more =
    item.op === 'release' && item.takeBack ? ' take back' : item.op === 'extend' && item.unknown ? ' unknown' : '';
  return `${item.op}${token}${attempt}${more}`;
}

function answerSpoken(answer: Answer): string {
  if (answer.status === 'ok') return `ok ${answer.attempt}${answer.counted ? '' : ' not counted'}`;
  if (answer.status === 'held') return `held by ${answer.token.slice(0, 4)} for ${answer.leftMs} ms`;
  if (answer.status !== 'hello') return answer.status;
  return `hello${answer.hold === '' ? '' : ` hold=${answer.hold} for ${answer.leftMs} ms`}`;
}
