/**
 * One voter's server in the simulation: the model of the script, and what can befall a process. Everything that it
 * ran is kept with its instant, so that a power cut can take back what was written last: the memory is made anew from
 * what had reached the disk.
 */
import type { Answer, BatchAnswer, Item } from '../../src/redis/items.ts';
import { VoterModel } from '../../src/redis/model.ts';
import type { Plan } from './plan.ts';
import type { Random } from './random.ts';
import type { Scheduler } from './scheduler.ts';

/** Items that leave nothing behind that could be missed. */
const READS: ReadonlySet<string> = new Set(['peek', 'look', 'read', 'hello', 'sync']);

interface Change {
  readonly atMs: number;
  /** The same instant by the server's own clock. */
  readonly clockMs: number;
  readonly writes: boolean;
  readonly apply: (model: VoterModel) => void;
}

export class VoterNode {
  readonly index: number;
  readonly name: string;
  up = true;
  /** Changes with every start of the process: what was sent to an earlier one is gone. */
  life = 0;
  hasScript = false;
  /** Instants at which writes were lost. */
  readonly forgotAtMs: number[] = [];
  /** Those of them that it cannot know of: the end of its append-only file was not written. */
  readonly cutAtMs: number[] = [];
  /** It knows that it has lost records, and has not been let count again since. */
  learning = false;
  /** Called whenever it may have begun to learn. */
  onLoss: () => void = () => {};
  readonly #scheduler: Scheduler;
  readonly #random: Random;
  readonly #aof: boolean;
  readonly #always: boolean;
  readonly #rate: number;
  #steppedMs = 0;
  #model: VoterModel;
  #changes: Change[] = [];
  #replayMs: number | undefined;
  #frozen = 0;
  #backlog: (() => void)[] = [];

  constructor(index: number, plan: Pick<Plan, 'aof' | 'always'>, scheduler: Scheduler, random: Random) {
    this.index = index;
    this.name = `v${index}`;
    this.#aof = plan.aof;
    this.#always = plan.always;
    this.#scheduler = scheduler;
    this.#random = random;
    // Half of the drift that the protocol allows for.
    this.#rate = random.between(0.995, 1.005);
    this.#model = this.#fresh();
  }

  /** Runs a request that has arrived; a frozen process gets to it when it goes on. */
  arrive(request: () => void): void {
    const { life } = this;
    const unlessGone = (): void => {
      if (this.up && this.life === life) request();
    };
    if (this.#frozen > 0) this.#backlog.push(unlessGone);
    else unlessGone();
  }

  run(batch: readonly Item[]): BatchAnswer {
    const answer = this.#model.run(batch);
    batch.forEach((item, index) => this.#follow(item, answer.answers[index]!));
    if (batch.some((item) => item.op !== 'peek')) {
      const writes = batch.some((item) => !READS.has(item.op));
      this.#keep((model) => void model.run(batch), writes);
    }
    return answer;
  }

  ids(): string[] {
    return this.#model.ids();
  }

  /** Looks at an event, as an operator would. */
  look(id: string): Answer {
    return this.#model.run([{ op: 'peek', id }]).answers[0]!;
  }

  /** What its clock shows. */
  get clockMs(): number {
    return this.#scheduler.now() * this.#rate + this.#steppedMs;
  }

  get accepts(): boolean {
    return this.up && this.#frozen === 0;
  }

  stop(): void {
    this.up = false;
    this.life += 1;
    this.hasScript = false;
    this.#backlog = [];
  }

  /**
   * Starts again; `lostMs`: what was written that long before the stop is lost, Infinity for everything.
   * `steppedMs`: what has become of its clock meanwhile.
   */
  start(lost: number, steppedMs: number): void {
    const lostMs = this.#always && lost !== Infinity ? 0 : lost;
    const keptUntilMs = this.#aof ? this.#scheduler.now() - lostMs : -1;
    const hasLost = this.#changes.some((change) => change.writes && change.atMs > keptUntilMs);
    this.#changes = this.#changes.filter((change) => change.atMs <= keptUntilMs);
    if (lostMs > 0 || !this.#aof) this.#replay();
    this.#steppedMs += steppedMs;
    const runId = this.#random.word();
    this.#change((model) => model.restart(runId, true));
    this.up = true;
    this.#noteLoss(hasLost);
  }

  flush(): void {
    const lost = this.#changes.some((change) => change.writes);
    this.#changes = [];
    this.#change((model) => model.flush());
    this.#noteLoss(lost);
  }

  freeze(): void {
    this.#frozen += 1;
  }

  thaw(): void {
    this.#frozen -= 1;
    if (this.#frozen > 0) return;
    const backlog = this.#backlog;
    this.#backlog = [];
    for (const request of backlog) request();
  }

  /** Whether it learns is what it says itself: one that lost only the end of its file does not. */
  #follow(item: Item, answer: Answer): void {
    if (answer.status !== 'hello') return;
    if (item.op === 'admit' || item.op === 'trust') this.learning = false;
    else this.learning = answer.hold === 'records' || answer.hold === 'empty';
    this.onLoss();
  }

  #noteLoss(lost: boolean): void {
    if (!lost) return;
    this.forgotAtMs.push(this.#scheduler.now());
    const hasMarker = this.#model.run([]).boot !== '';
    if (hasMarker) this.cutAtMs.push(this.#scheduler.now());
    else this.learning = true;
    this.onLoss();
  }

  #change(apply: (model: VoterModel) => void): void {
    apply(this.#model);
    this.#keep(apply, false);
  }

  #keep(apply: Change['apply'], writes: boolean): void {
    this.#changes.push({ atMs: this.#scheduler.now(), clockMs: this.clockMs, writes, apply });
  }

  #replay(): void {
    this.#model = this.#fresh();
    for (const change of this.#changes) {
      this.#replayMs = change.clockMs;
      change.apply(this.#model);
    }
    this.#replayMs = undefined;
  }

  #fresh(): VoterModel {
    return new VoterModel({
      now: () => this.#replayMs ?? this.clockMs,
      runId: `${this.name}-first`,
      aof: this.#aof,
    });
  }
}
