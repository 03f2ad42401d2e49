/** Where the application listens. */

export interface AppAddress {
  readonly tls: boolean;
  /** Host name or IP address, IPv6 without its brackets. */
  readonly host: string;
  readonly port: number;
  /** Path of a UNIX socket, where it listens on one; host and port are for the name's sake then. */
  readonly socketPath: string | undefined;
  /** What it is called in `Host`. */
  readonly authority: string;
  /** Whose certificate it has to show; undefined for an IP address. */
  readonly servername: string | undefined;
}

/** `url`: `http://host:port`, `https://host:port` or `unix:/path`. A path of a URL is ignored. */
export function appAddress(url: string): AppAddress {
  const socketPath = url.startsWith('unix:') ? url.slice('unix:'.length) : undefined;
  const { protocol, hostname, port, host: authority } = new URL(socketPath === undefined ? url : 'http://localhost');
  const tls = protocol === 'https:';
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  const isIp = host.includes(':') || /^\d+(\.\d+){3}$/.test(host);
  return {
    tls,
    host,
    port: port === '' ? (tls ? 443 : 80) : Number(port),
    socketPath,
    authority,
    servername: tls && !isIp ? host : undefined,
  };
}
