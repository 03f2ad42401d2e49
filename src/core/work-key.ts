/** The two halves of an event in async mode. */
import type { DeliveryKey } from './delivery.ts';
import { digest, utf8 } from './digest.ts';

/**
 * The other half of an event's key: under it the work on an accepted event is claimed, once the event itself is
 * done for its sender. `again`: names one repetition that an operator asked for, whatever became of the work before.
 */
export function workKey(event: DeliveryKey, again = ''): DeliveryKey {
  return { id: digest([utf8('the work on'), utf8(event.id), utf8(again)]) } as DeliveryKey;
}
