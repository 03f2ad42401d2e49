/** Routes with a fault of form: one slip must not hide what else is wrong with them. */
import type { Sender } from '../core/sender.ts';
import type { Findings } from './complaints.ts';
import { secretRef } from './fields.ts';
import { senderNamed } from './known-sender.ts';
import { readSecret, type Source } from './secrets.ts';
import { standingItems, type Written } from './standing.ts';

/** What can be judged by itself: whether its sender is known, and its secrets are there. */
export function checkFallenRoutes(
  written: readonly Written<unknown>[],
  source: Source,
  senders: ReadonlyMap<string, Sender>,
  findings: Findings,
): void {
  for (const { index, item } of written) {
    if (typeof item !== 'object' || item === null) continue;
    const { sender, secrets }: { sender?: unknown; secrets?: unknown } = item;
    if (typeof sender === 'string') senderNamed(sender, ['routes', index], senders, findings);
    for (const { index: place, item: ref } of standingItems(secrets, secretRef()))
      readSecret(ref, source, ['routes', index, 'secrets', place], findings);
  }
}
