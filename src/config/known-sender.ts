/** Senders by name. */
import type { Sender } from '../core/sender.ts';
import { describe, type Findings, type Path } from './complaints.ts';
import { nearest } from './nearest.ts';

/** Undefined after a complaint. `at`: the route. */
export function senderNamed(
  name: string,
  at: Path,
  senders: ReadonlyMap<string, Sender>,
  findings: Findings,
): Sender | undefined {
  const sender = senders.get(name);
  if (sender === undefined) {
    const meant = nearest(name, senders.keys());
    const hint =
      meant === undefined
        ? `one of ${[...senders.keys()].join(', ')}, or verify instead`
        : `a sender that is known; did you mean ${meant}?`;
    findings.complain([...at, 'sender'], `found ${describe(name, [])}; needs ${hint}`);
  }
  return sender;
}
