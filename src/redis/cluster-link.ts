/**
 * A Redis Cluster as one voter: one link to each master that owns a slot of ours, and each hash tag a lane on one of
 * them. ioredis's own cluster client sends a batch again wherever it is told to, so that a release could be overtaken
 * by the claim before it; here a batch goes to one server once, and what that server says is the answer.
 *
 *     looking ──a map with a master for every tag, each of them up──▶ up ──a lane's link breaks, or moves──▶ looking
 *
 * - Up means that all lanes can be asked: a cluster is one voter, which counts as a whole or not at all.
 * - A lane that has moved to another server ends the connection as far as the voter can tell: it greets all lanes
 *   anew, and a master that was a replica before is found out by its run id.
 * - The map is read every two seconds, at once when a server says that it is not the owner, and from one member after
 *   the other: one that was left behind by the others tells an old one.
 */
import type { Clock } from '../core/ports.ts';
import type { Facts } from './facts.ts';
import type { BatchAnswer, Item } from './items.ts';
import { LinkError, type Link, type Page } from './link.ts';
import { RedisLink, type RedisNode } from './redis-link.ts';
import { mastersOf, TAGS, type ClusterAddress } from './slots.ts';

const WATCH_MS = 2000;
/** While something is missing, or has just changed. */
const PACE_MS = 100;

export interface ClusterNode extends Omit<RedisNode, 'host' | 'port'> {
  /** Any members; the others are found through them. */
  readonly seeds: readonly ClusterAddress[];
}

interface Member {
  readonly name: string;
  readonly address: ClusterAddress;
  readonly link: RedisLink;
  up: boolean;
}

export class ClusterLink implements Link {
  readonly #node: ClusterNode;
  readonly #clock: Clock;
  readonly #members = new Map<string, Member>();
  readonly #lanes = new Map<string, Member>();
  readonly #listeners: { changed: (up: boolean) => void; failed: ((errorClass: string) => void) | undefined }[] = [];
  readonly #closing = new AbortController();
  readonly #watching: Promise<void>;
  #nap = new AbortController();
  #hasten = false;
  #up = false;
  #turn = 0;

  constructor(node: ClusterNode, clock: Clock) {
    this.#node = node;
    this.#clock = clock;
    this.#watching = this.#watch();
  }

  async run(batch: readonly Item[], tag: string): Promise<BatchAnswer> {
    const lane = this.#lanes.get(tag);
    if (!lane) throw new LinkError('disconnected');
    try {
      return await lane.link.run(batch, tag);
    } catch (error) {
      if (error instanceof LinkError && error.errorClass === 'moved') this.#hurry();
      throw error;
    }
  }

  async load(): Promise<void> {
    await Promise.all(this.#masters().map(async ({ link }) => await link.load()));
  }

  /** Master by master; the cursor carries which of them it is. */
  async scan(cursor: string): Promise<Page> {
    const masters = this.#masters().toSorted((a, b) => (a.name < b.name ? -1 : 1));
    const [, place = '0', within = '0'] = /^(\d+)\/(\d+)$/.exec(cursor) ?? [];
    const at = Number(place);
    const master = masters[at];
    if (!master) throw new LinkError('disconnected');
    const page = await master.link.scan(within);
    if (page.cursor !== '0') return { ...page, cursor: `${at}/${page.cursor}` };
    return { ...page, cursor: at + 1 < masters.length ? `${at + 1}/0` : '0' };
  }

  async facts(): Promise<readonly Facts[]> {
    const all = await Promise.all(this.#masters().map(async ({ link }) => await link.facts()));
    return all.flat();
  }

  onChange(changed: (up: boolean) => void, failed?: (errorClass: string) => void): void {
    this.#listeners.push({ changed, failed });
    changed(this.#up);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#nap.abort();
    await Promise.all([...this.#members.values()].map(async ({ link }) => await link.close()));
    await this.#watching;
  }

  #masters(): Member[] {
    return [...new Set(this.#lanes.values())];
  }

  #hurry(): void {
    this.#hasten = true;
    this.#nap.abort();
  }

  async #watch(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      this.#hasten = false;
      await this.#look();
      await this.#clock.sleep(PACE_MS, signal);
      if (!this.#up || this.#hasten || signal.aborted) continue;
      this.#nap = new AbortController();
      await this.#clock.sleep(WATCH_MS - PACE_MS, this.#nap.signal);
    }
  }

  async #look(): Promise<void> {
    const up = [...this.#members.values()].filter((member) => member.up);
    if (up.length === 0) {
      for (const seed of this.#node.seeds) this.#member(seed);
      return;
    }
    this.#turn += 1;
    const member = up[this.#turn % up.length]!;
    const late = new AbortController();
    const map = await Promise.race([
      member.link.slots().then(
        (reply) => mastersOf(reply, member.address),
        () => undefined,
      ),
      this.#clock.sleep(this.#node.timeoutMs, AbortSignal.any([late.signal, this.#closing.signal])),
    ]).finally(() => late.abort());
    if (map && !this.#closing.signal.aborted) this.#adopt(map);
  }

  #adopt(map: ReadonlyMap<string, ClusterAddress>): void {
    const wanted = TAGS.map((tag) => [tag, this.#member(map.get(tag)!)] as const);
    if (wanted.some(([tag, member]) => this.#lanes.get(tag) !== member)) {
      this.#setUp(false);
      for (const [tag, member] of wanted) this.#lanes.set(tag, member);
    }
    const used = new Set(this.#lanes.values());
    for (const member of this.#members.values()) if (!used.has(member)) this.#drop(member);
    this.#changed();
  }

  #member(address: ClusterAddress): Member {
    const name = `${address.host}:${address.port}`;
    const known = this.#members.get(name);
    if (known) return known;
    const { seeds: _, ...settings } = this.#node;
    const member: Member = { name, address, link: new RedisLink({ ...settings, ...address }), up: false };
    this.#members.set(name, member);
    member.link.onChange(
      (up) => {
        member.up = up;
        this.#changed();
      },
      (why) => {
        if (this.#members.get(name) === member) for (const { failed } of this.#listeners) failed?.(why);
      },
    );
    return member;
  }

  /** What is under way there ends without an answer. */
  #drop(member: Member): void {
    this.#members.delete(member.name);
    void member.link.close();
  }

  #changed(): void {
    this.#setUp(TAGS.every((tag) => this.#lanes.get(tag)?.up === true));
    if (!this.#up) this.#hurry();
  }

  #setUp(up: boolean): void {
    if (up === this.#up) return;
    this.#up = up;
    for (const { changed } of this.#listeners) changed(up);
  }
}
