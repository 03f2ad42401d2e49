/**
 * What an exchange with the application means for the claim: pure.
 *
 * | the application                | claim    | why                                                        |
 * | answered a completing status   | complete | it has handled the event                                   |
 * | answered anything else         | release  | it has said that it did not; the sender may try again      |
 * | was never sent a byte          | release  | nothing can have happened; the attempt is taken back       |
 * | was sent bytes, did not answer | leave    | it may have acted or be acting still: nobody knows         |
 */
import type { AppReply } from './delivery.ts';
import type { AppResult } from './ports.ts';
import { completes, type Route } from './route.ts';

export type Settlement =
  | { readonly claim: 'complete'; readonly reply: AppReply }
  | { readonly claim: 'release'; readonly sent: boolean }
  | { readonly claim: 'leave' };

export function settle(route: Pick<Route, 'completeOn'>, result: AppResult): Settlement {
  switch (result.kind) {
    case 'answered':
      return completes(route, result.reply.status)
        ? { claim: 'complete', reply: result.reply }
        : { claim: 'release', sent: true };
    case 'never-sent':
      return { claim: 'release', sent: false };
    case 'unknown':
      return { claim: 'leave' };
  }
}
