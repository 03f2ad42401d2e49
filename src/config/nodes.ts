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
  readonly username: string | undefined;
  readonly password: string | undefined;
  /** PEM bytes; undefined: no TLS. */
  readonly tls:
    | { readonly ca: Buffer | undefined; readonly cert: Buffer | undefined; readonly key: Buffer | undefined }
    | undefined;
}

/** `count`: of all nodes, those included that are not well formed. */
export function compileNodes(
  nodes: readonly Written<NodeSettings>[],
  count: number,
  source: Source,
  findings: Findings,
): RedisNode[] {
  checkNumber(count, findings);
  const first = new Map<string, number>();
  return nodes.map(({ index, item: node }) => {
    const at: Path = ['redis', 'nodes', index];
    const { name, host, port, scheme } = node.url;
    const taken = first.get(name);
    if (taken === undefined) first.set(name, index);
    else
      findings.complain(
        [...at, 'url'],
        `found ${name}, which redis.nodes[${taken}] is already; needs another Redis, as one cannot vote twice`,
      );
    if (node.username !== undefined && node.password === undefined) {
      findings.complain(
        [...at, 'username'],
        'found a user without password; needs password: {file: …} or {env: …} beside it',
      );
    }
    return {
      name,
      host,
      port,
      username: node.username,
      password: node.password && readSecret(node.password, source, [...at, 'password'], findings),
      tls: tlsOf(node, scheme, source, at, findings),
    };
  });
}

/** Votes need a majority. An even number has the spare of the odd number below it, and can end in a tie. */
function checkNumber(count: number, findings: Findings): void {
  const at = ['redis', 'nodes'];
  const spare = Math.floor((count - 1) / 2);
  if (count === 0) {
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
  } else if (count === 1) {
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
