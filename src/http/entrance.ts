/** How many deliveries may be unanswered at the same time: of one route, and of all together. */
import type { Route } from '../core/route.ts';

export interface Entrance {
  /** False when there is no more room; who came in leaves once. */
  enter(route: Pick<Route, 'name' | 'limits'>): boolean;
  leave(route: Pick<Route, 'name'>): void;
  /** Another limit for all together, from now on. */
  resize(limit: number): void;
}

export function createEntrance(limit: number): Entrance {
  const inside = new Map<string, number>();
  let most = limit;
  let all = 0;
  return {
    enter({ name, limits }) {
      const of = inside.get(name) ?? 0;
      if (all >= most || of >= (limits?.inFlight ?? Infinity)) return false;
      all += 1;
      inside.set(name, of + 1);
      return true;
    },
    leave({ name }) {
      all -= 1;
      const left = inside.get(name)! - 1;
      if (left > 0) inside.set(name, left);
      else inside.delete(name);
    },
    resize: (next) => void (most = next),
  };
}
