/** The voters: how many, and how to reach them. */
import type { Findings, Path } from './complaints.ts';
import type { NodeSettings } from './schema.ts';
import type { Written } from './standing.ts';
import { readPem, readSecret, type Source } from './secrets.ts';

/** One Redis. */
export interface RedisNode {
  /** `host:port`; its name in metrics and logs. */
  readonly name: string;
  readonly host: string;
  readonly port: number;
  /** Members of a Redis Cluster, `host` and `port` the first of them; undefined: one server. */
  readonly cluster: readonly { readonly host: string; readonly port: number }[] | undefined;
  readonly username: string | undefined;
  readonly password: string | undefined;
  /** PEM bytes; undefined: no TLS. */
  readonly tls:
    | { readonly ca: Buffer | undefined; readonly cert: Buffer | undefined; readonly key: Buffer | undefined }
    | undefined;
}

/** The two lists of voters: those that there are, and those that there were until a change is over. */
export type NodeList = 'nodes' | 'previous';

/** `count`: of all in the list, those included that are not well formed. `alone`: nothing else decides. */
export function compileNodes(
  list: NodeList,
  nodes: readonly Written<NodeSettings>[],
  count: number,
  source: Source,
  findings: Findings,
  alone = true,
): RedisNode[] {
  checkNumber(list, count, alone, findings);
  const first = new Map<string, number>();
  return nodes.flatMap(({ index, item: node }) => {
    const at: Path = ['redis', list, index];
    const addresses = addressesOf(node, at, findings);
    if (addresses === undefined) return [];
    for (const { path, address } of addresses) {
      const taken = first.get(address.name);
      if (taken === undefined) first.set(address.name, index);
      else if (taken === index) findings.complain(path, `found ${address.name} a second time; needs each member once`);
      else
        findings.complain(
          path,
          `found ${address.name}, which redis.${list}[${taken}] is already; needs another Redis, as one cannot vote twice`,
        );
    }
    if (node.username !== undefined && node.password === undefined) {
      findings.complain(
        [...at, 'username'],
        'found a user without password; needs password: {file: …} or {env: …} beside it',
      );
    }
    const { name, host, port, scheme } = addresses[0]!.address;
    const cluster = node.cluster?.map((member) => ({ host: member.host, port: member.port }));
    return [
      {
        ...{ name, host, port, cluster },
        username: node.username,
        password: node.password && readSecret(node.password, source, [...at, 'password'], findings),
        tls: tlsOf(node, scheme, source, at, findings),
      },
    ];
  });
}

function addressesOf(
  { url, cluster }: NodeSettings,
  at: Path,
  findings: Findings,
): { readonly path: Path; readonly address: NonNullable<NodeSettings['url']> }[] | undefined {
  if ((url === undefined) === (cluster === undefined)) {
    const found = url === undefined ? 'neither url nor cluster' : 'url and cluster';
    findings.complain(at, `found ${found}; needs url for one server, or cluster for some members of a Redis Cluster`);
    return undefined;
  }
  if (url) return [{ path: [...at, 'url'], address: url }];
  const members = cluster!.map((address, member) => ({ path: [...at, 'cluster', member], address }));
  const { scheme } = members[0]!.address;
  for (const { path, address } of members)
    if (address.scheme !== scheme)
      findings.complain(path, `found ${address.scheme}:// beside ${scheme}://; needs one of them for all members`);
  return members;
}

/**
 * While the voters change, what the old ones know is copied to the new ones. Voters that stay are not taught, so they
 * must not be able to decide alone where they were no majority before.
 */
export function checkChange(nodes: readonly RedisNode[], previous: readonly RedisNode[], findings: Findings): void {
  if (previous.length === 0) return;
  const at = ['redis', 'previous'];
  const majority = (list: readonly RedisNode[]): number => Math.floor(list.length / 2) + 1;
  const before = new Map(previous.map((node) => [node.name, node]));
  const staying = nodes.filter(({ name }) => before.has(name)).length;
  checkNames(nodes, previous, findings);
  if (nodes.length === 0) findings.complain(at, 'found without redis.nodes; needs the new nodes there');
  else if (staying === nodes.length && staying === previous.length)
    findings.warn(at, 'the same as redis.nodes: nothing changes, take it out');
  else if (staying >= majority(nodes) && majority(nodes) < majority(previous))
    findings.complain(
      at,
      `found ${previous.length} nodes, of which ${staying} stay, enough to decide among ${nodes.length} what they could not before; needs fewer of them in redis.nodes, and new ones in their place`,
    );
}

/** A server that stays is recognized by its name. Under two of them it would be taught by itself, and vote as two. */
function checkNames(nodes: readonly RedisNode[], previous: readonly RedisNode[], findings: Findings): void {
  const members = ({ cluster, ...one }: RedisNode): string[] =>
    (cluster ?? [one]).map(({ host, port }) => `${host}:${port}`);
  const written = ({ name, cluster }: RedisNode): string => (cluster ? `the cluster of ${name}` : name);
  for (const old of previous)
    for (const node of nodes)
      if (written(old) !== written(node) && members(old).some((member) => members(node).includes(member)))
        findings.complain(
          ['redis', 'previous'],
          `found ${written(old)}, which is ${written(node)} in redis.nodes; needs the same in both lists`,
        );
}

/** Votes need a majority. An even number has the spare of the odd number below it, and can end in a tie. */
function checkNumber(list: NodeList, count: number, alone: boolean, findings: Findings): void {
  const at = ['redis', list];
  const spare = Math.floor((count - 1) / 2);
  if (count === 0) {
    if (list === 'previous' || !alone) return;
    findings.warn(
      at,
      'none: claims live in the memory of this process, are lost when it stops and are not shared; for trials only',
    );
  } else if (![1, 3, 5, 7].includes(count)) {
    findings.complain(
      at,
      count % 2 === 0
        ? `found ${count} nodes, of which ${spare} may fail, no more than of ${count - 1}; needs 1, 3, 5 or 7`
        : `found ${count} nodes; needs 1, 3, 5 or 7`,
    );
  } else if (count === 1 && list === 'nodes') {
    findings.warn(at, 'one node: while it is down nothing can be claimed; of three, one may fail');
  }
}

function tlsOf(node: NodeSettings, scheme: string, source: Source, at: Path, findings: Findings): RedisNode['tls'] {
  if (scheme !== 'rediss') {
    if (node.tls !== undefined)
      findings.complain([...at, 'tls'], 'found beside a redis:// url; needs url: rediss://…, or no tls');
    return undefined;
  }
  const { ca, cert, key } = node.tls ?? {};
  if ((cert === undefined) !== (key === undefined)) {
    findings.complain(
      [...at, 'tls'],
      `found ${cert === undefined ? 'key without cert' : 'cert without key'}; needs both or neither`,
    );
  }
  const read = (path: string | undefined, name: string) =>
    path === undefined ? undefined : readPem(path, source, [...at, 'tls', name], findings);
  return { ca: read(ca, 'ca'), cert: read(cert, 'cert'), key: read(key, 'key') };
}
