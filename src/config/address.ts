/** URLs of neighbours: scheme, host and port, and nothing else that could be overlooked. */
import * as z from 'zod';

export interface Address {
  readonly scheme: string;
  /** Lower case, without the brackets of IPv6. */
  readonly host: string;
  readonly port: number;
  /** `host:port`, IPv6 in brackets. Two spellings of one address have the same one. */
  readonly name: string;
}

/** `schemes`: what is allowed, with its default port; `login`: what to do instead of `user:password@`. */
export function address(schemes: Readonly<Record<string, number>>, login: string) {
  const form = `a URL such as ${Object.keys(schemes)[0]}://host:port`;
  return z.string({ error: form }).transform((text, context) => {
    const read = readAddress(text, schemes, login, form);
    if (typeof read !== 'string') return read;
    context.addIssue({ code: 'custom', message: read });
    return z.NEVER;
  });
}

/** Where the application listens, as the program takes it: `http://host:port`, `https://host:port` or `unix:/path`. */
export function applicationUrl() {
  const schemes = { http: 80, https: 443 };
  const form = 'a URL such as http://host:port';
  return z.string({ error: form }).transform((text, context) => {
    if (!text.startsWith('unix:')) {
      const read = readAddress(text, schemes, 'a URL without user and password', form);
      if (typeof read !== 'string') return `${read.scheme}://${read.name}`;
      context.addIssue({ code: 'custom', message: read });
    } else if (/^unix:\/[^\0\n]{1,106}$/.test(text)) {
      return text;
    } else {
      // Longer paths do not fit into the address of a socket.
      context.addIssue({ code: 'custom', message: 'unix: and an absolute path of at most 107 characters' });
    }
    return z.NEVER;
  });
}

function readAddress(
  text: string,
  schemes: Readonly<Record<string, number>>,
  login: string,
  form: string,
): Address | string {
  const [, scheme, rest] = /^([A-Za-z][A-Za-z0-9+.-]*):\/\/(.*)$/.exec(text) ?? [];
  if (scheme === undefined || rest === undefined) return form;
  const defaultPort = Object.hasOwn(schemes, scheme.toLowerCase()) ? schemes[scheme.toLowerCase()]! : undefined;
  if (defaultPort === undefined) return `${form}; allowed schemes: ${Object.keys(schemes).join(', ')}`;
  if (rest.includes('@')) return login;
  // The standard normalises host names only for schemes of the web; its port 80 reads as no port there.
  const web = URL.parse(`http://${rest}`);
  const plain = URL.parse(`other://${rest}`);
  if (web === null || plain === null || web.hostname === '') return form;
  if (!['', '/'].includes(web.pathname) || /[?#]/.test(rest)) return `${form}, without path, query or fragment`;
  const port = plain.port === '' ? defaultPort : Number(plain.port);
  if (port === 0) return `${form}, with a port from 1 to 65535`;
  return {
    scheme: scheme.toLowerCase(),
    host: web.hostname.replace(/^\[(.*)\]$/, '$1'),
    port,
    name: `${web.hostname.replace(/(?<=.)\.$/, '')}:${port}`,
  };
}
