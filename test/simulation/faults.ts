/** Does to voters, links and gateways what the plan says, when it says so, until everything is to be calm. */
import type { Item } from '../../src/redis/items.ts';
import type { Gateway } from './gateway.ts';
import type { History } from './history.ts';
import type { VoterNode } from './node.ts';
import type { Fault, FaultKind, Plan } from './plan.ts';
import type { Random } from './random.ts';
import type { Scheduler } from './scheduler.ts';
import type { SimLink } from './sim-link.ts';

const OF_GATEWAYS: ReadonlySet<string> = new Set(['lapse', 'death', 'forget'] satisfies FaultKind[]);
const FIVE_MINUTES = 300_000;
const A_DAY = 86_400_000;

export class Faults {
  readonly #plan: Plan;
  readonly #nodes: readonly VoterNode[];
  /** The processes that run now; one that died is replaced in its place. */
  readonly #gateways: Gateway[];
  readonly #start: (place: number) => Gateway;
  readonly #history: History;
  readonly #scheduler: Scheduler;
  readonly #random: Random;
  readonly #seen = new Map<string, number>();
  #waiting: Fault[] = [];

  constructor(
    plan: Plan,
    nodes: readonly VoterNode[],
    gateways: Gateway[],
    start: (place: number) => Gateway,
    history: History,
    scheduler: Scheduler,
    random: Random,
  ) {
    this.#plan = plan;
    this.#nodes = nodes;
    this.#gateways = gateways;
    this.#start = start;
    this.#history = history;
    this.#scheduler = scheduler;
    this.#random = random;
    for (const fault of plan.faults) {
      const { when } = fault;
      if ('atMs' in when)
        scheduler.at(when.atMs, () => this.#befall(fault, nodes[fault.voter]!, gateways[fault.gateway]!));
      else this.#waiting.push(fault);
    }
  }

  /** A voter has run this batch, and has not replied yet. */
  ran(link: SimLink, batch: readonly Item[]): void {
    if (this.#waiting.length === 0) return;
    for (const { op } of batch) {
      const count = (this.#seen.get(op) ?? 0) + 1;
      this.#seen.set(op, count);
      const due = this.#waiting.filter(
        (fault) => 'op' in fault.when && fault.when.op === op && fault.when.nth === count,
      );
      if (due.length === 0) continue;
      this.#waiting = this.#waiting.filter((fault) => !due.includes(fault));
      for (const fault of due) {
        const inMs = this.#random.pick([0, 0, this.#random.between(0, 10)]);
        const gateway = this.#gateways.find((one) => one.name === link.gateway) ?? this.#gateways[fault.gateway]!;
        const node = fault.elsewhere === true || this.#random.chance(0.3) ? this.#nodes[fault.voter]! : link.node;
        this.#scheduler.at(this.#scheduler.now() + inMs, () => this.#befall(fault, node, gateway));
      }
    }
  }

  #befall(fault: Fault, node: VoterNode, gateway: Gateway): void {
    const nowMs = this.#scheduler.now();
    if (nowMs >= this.#plan.calmAtMs) return;
    const untilMs = Math.min(nowMs + fault.lengthMs, this.#plan.calmAtMs);
    const link = gateway.links[node.index]!;
    const { kind } = fault;
    this.#history.trace?.(
      'fault',
      `${kind} ${OF_GATEWAYS.has(kind) ? gateway.name : node.name} until ${untilMs.toFixed(1)}`,
    );
    switch (kind) {
      case 'cut':
        return link.cut();
      case 'stall':
        return link.stall('requests', untilMs);
      case 'deaf':
        return link.stall('replies', untilMs);
      case 'kill':
        return this.#restart(node, untilMs, 0);
      case 'power cut':
        return this.#restart(node, untilMs, fault.lostMs);
      case 'empty restart':
        return this.#restart(node, untilMs, Infinity);
      case 'flush':
        return node.flush();
      case 'freeze':
        node.freeze();
        return void this.#scheduler.at(untilMs, () => node.thaw());
      case 'script flush':
        node.hasScript = false;
        return;
      case 'lapse':
        return gateway.lapse(untilMs, this.#random.chance(0.5));
      case 'forget':
        return gateway.forget(this.#random.chance(0.5));
      case 'death': {
        const place = this.#gateways.indexOf(gateway);
        if (place < 0) return;
        gateway.die();
        return void this.#scheduler.at(untilMs, () => (this.#gateways[place] = this.#start(place)));
      }
    }
  }

  #restart(node: VoterNode, untilMs: number, lostMs: number): void {
    if (!node.up) return;
    for (const gateway of this.#gateways) gateway.links[node.index]!.cut();
    node.stop();
    this.#scheduler.at(untilMs, () => node.start(lostMs, this.#steppedMs(lostMs)));
  }

  /**
   * How far the clock of a server has stepped while it was away. One that comes back with its keys ends their lives too
   * soon, which is what its hold is for; one that comes back without may show any time.
   */
  #steppedMs(lostMs: number): number {
    if (this.#plan.always || this.#random.chance(0.7)) return 0;
    return lostMs === Infinity ? this.#random.between(-A_DAY, A_DAY) : this.#random.between(0, FIVE_MINUTES);
  }
}
