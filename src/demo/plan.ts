import type { Clock } from '../core/ports.ts';

/** One event of the storm: who sends it, and how the application takes it. */
export interface PlannedEvent {
  readonly id: string;
  readonly sender: 'github' | 'stripe';
  /** How many times the application answers 500 before it succeeds. */
  readonly failures: number;
  /** Milliseconds that the application works each time. */
  readonly workMs: number;
}

/** One event in five fails once or twice, one in ten is slow. */
export function planEvents(count: number, { random }: Pick<Clock, 'random'>): PlannedEvent[] {
  return Array.from({ length: count }, (_, n) => ({
    id: `evt_demo_${n}`,
    sender: n % 2 === 0 ? 'github' : 'stripe',
    failures: random() < 0.2 ? 1 + Math.round(random()) : 0,
    workMs: random() < 0.1 ? 300 + random() * 600 : 5 + random() * 60,
  }));
}
