/**
 * Claims for deliveries that carry several events: each element is claimed, and the lease is for those that were won.
 *
 * | elements                             | result                                                                |
 * | any held, the others won or done     | held: what was won is given back, as if it had not been claimed       |
 * | any that no quorum answers for       | unavailable; likewise                                                 |
 * | all done                             | done                                                                  |
 * | some won, the others done            | won: the lease holds, renews and settles all that were won together   |
 *
 * Nothing is waited for while something is held, so there is no deadlock. All gateways claim in the same order of keys,
 * batch by batch, and stop at the first that is not won: of deliveries that overlap one gets on. Between batches the
 * process has time for others.
 */
import type { DeliveryKey, Done, Trail, Verified } from './delivery.ts';
import { takeApart, type Elements } from './elements.ts';
import type { ClaimResult, Claims, Completion, Events, Lease, Portion, Standing } from './ports.ts';
import type { Route } from './route.ts';

/** As many as a voter takes in one script; nothing comes in between of those. */
const BATCH = 200;

/**
 * The claims of this delivery: element by element, where its route asks for that and it can be taken apart; otherwise
 * it is one event like any other. `whole`: what it is called then. Undefined: there is no memory for what may be left of its body.
 */
export function claimsFor(
  gate: { readonly service: string; readonly claims: Claims; readonly events: Events },
  route: Route,
  delivery: Verified,
  whole: DeliveryKey,
  trail: Trail,
): Claims | undefined {
  if (route.elements === undefined) return gate.claims;
  const elements = takeApart(route.elements, gate.service, route.name, delivery);
  if (typeof elements === 'string') {
    gate.events.undivided(route.name, elements);
    return gate.claims;
  }
  if (delivery.share?.take(delivery.body.length) === false) return undefined;
  const onClaimed = (kept: number): void => {
    trail.elements = `${kept}/${elements.count}`;
    gate.events.elementsClaimed(route.name, kept, elements.count - kept);
  };
  const make = (claims: Claims): Claims =>
    new ElementClaims(claims, whole, elements, route.observe === true, onClaimed);
  return gate.claims.around?.(make) ?? make(gate.claims);
}

class ElementClaims implements Claims {
  readonly #claims: Claims;
  readonly #whole: DeliveryKey;
  readonly #elements: Elements;
  readonly #observed: boolean;
  readonly #onClaimed: (kept: number) => void;

  /**
   * `whole`: what names the delivery; no voter hears of it, and any other key is claimed as it is. `observed`: the body
   * is forwarded whole all the same. `onClaimed` hears how many elements were won, whenever it is known.
   */
  constructor(
    claims: Claims,
    whole: DeliveryKey,
    elements: Elements,
    observed: boolean,
    onClaimed: (kept: number) => void,
  ) {
    this.#claims = claims;
    this.#whole = whole;
    this.#elements = elements;
    this.#observed = observed;
    this.#onClaimed = onClaimed;
  }

  async claim(key: DeliveryKey, retentionMs: number): Promise<ClaimResult> {
    if (key.id !== this.#whole.id) return await this.#claims.claim(key, retentionMs);
    const results: (readonly [DeliveryKey, ClaimResult])[] = [];
    for (const batch of batches(this.#elements.keys)) {
      const claimed = batch.map(async (each) => [each, await this.#claims.claim(each, retentionMs)] as const);
      results.push(...(await Promise.all(claimed)));
      if (results.some(isInTheWay)) break;
    }
    const leases = results.flatMap(([, result]) => (result.kind === 'won' ? [result.lease] : []));
    const blocked = blockedBy(results);
    if (blocked) {
      await inBatches(leases, async (lease) => await this.#claims.release(lease, false));
      return blocked;
    }
    this.#onClaimed(leases.length);
    const [first, ...others] = leases;
    if (first) return { kind: 'won', lease: new GroupLease(key, [first, ...others], this.#portion(leases)) };
    return {
      kind: 'done',
      done: forAll(results.flatMap(([, result]) => (result.kind === 'done' ? [result.done] : []))),
    };
  }

  /** The whole group's: one element whose lock is lost is a forward that may come twice. */
  async extend(lease: Lease): Promise<boolean> {
    const held = await inBatches(leasesOf(lease), async (one) => await this.#claims.extend(one));
    return !held.includes(false);
  }

  async complete(lease: Lease, completion: Completion): Promise<void> {
    await inBatches(leasesOf(lease), async (one) => await this.#claims.complete(one, completion));
  }

  async release(lease: Lease, sent: boolean): Promise<void> {
    await inBatches(leasesOf(lease), async (one) => await this.#claims.release(one, sent));
  }

  async leave(lease: Lease): Promise<void> {
    await inBatches(leasesOf(lease), async (one) => await this.#claims.leave(one));
  }

  async peek(key: DeliveryKey): Promise<Standing> {
    return await this.#claims.peek(key);
  }

  #portion(leases: readonly Lease[]): Portion {
    const body = this.#observed ? undefined : this.#elements.only(new Set(leases.map((lease) => lease.key.id)));
    return { kept: leases.length, of: this.#elements.count, body };
  }
}

function* batches<T>(all: readonly T[]): Generator<readonly T[]> {
  for (let from = 0; from < all.length; from += BATCH) yield all.slice(from, from + BATCH);
}

async function inBatches<T, R>(all: readonly T[], each: (one: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (const batch of batches(all)) results.push(...(await Promise.all(batch.map(each))));
  return results;
}

/** A lease that has grown too old while others were claimed says that the voters are too slow for so many. */
function isInTheWay([, result]: readonly [DeliveryKey, ClaimResult]): boolean {
  return result.kind === 'held' || result.kind === 'unavailable' || (result.kind === 'won' && !result.lease.mayStart());
}

/** What stands in the way. Of several that are held, one that will not end soon says so for all. */
function blockedBy(results: readonly (readonly [DeliveryKey, ClaimResult])[]): ClaimResult | undefined {
  if (results.some(([, { kind }]) => kind === 'unavailable')) return { kind: 'unavailable' };
  if (!results.some(isInTheWay)) return undefined;
  const held = results.flatMap(([key, result]) =>
    result.kind === 'held' ? [{ ...result, of: result.of ?? key }] : [],
  );
  const [longest] = held.toSorted((a, b) => Number(b.unknown) - Number(a.unknown) || b.leftMs - a.leftMs);
  if (longest === undefined) return { kind: 'held', leftMs: 0, unknown: false, split: true };
  return { ...longest, split: held.every(({ split }) => split) };
}

/** Told to the sender for all of them: a success where there is one, so that it does not give the others up; else the last. */
function forAll(dones: readonly Done[]): Done {
  const isSuccess = ({ status }: Done): number => (status >= 200 && status <= 299 ? 1 : 0);
  return dones.toSorted((a, b) => isSuccess(b) - isSuccess(a) || b.wallMs - a.wallMs)[0]!;
}

/** Valid while all of them are. */
class GroupLease implements Lease {
  readonly key: DeliveryKey;
  readonly leases: readonly [Lease, ...Lease[]];
  readonly portion: Portion;

  constructor(key: DeliveryKey, leases: readonly [Lease, ...Lease[]], portion: Portion) {
    this.key = key;
    this.leases = leases;
    this.portion = portion;
  }

  /** The highest: above 1, an earlier attempt at one of them may have run. */
  get attempt(): number {
    return Math.max(...this.leases.map(({ attempt }) => attempt));
  }

  get memorySinceMs(): number | undefined {
    const since = this.leases.flatMap(({ memorySinceMs }) => memorySinceMs ?? []);
    return since.length === 0 ? undefined : Math.max(...since);
  }

  validForMs(): number {
    return Math.min(...this.leases.map((lease) => lease.validForMs()));
  }

  mayStart(): boolean {
    return this.leases.every((lease) => lease.mayStart());
  }
}

const leasesOf = (lease: Lease): readonly Lease[] => (lease instanceof GroupLease ? lease.leases : [lease]);
