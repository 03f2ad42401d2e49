/** Paths of routes: such that every application reads them in the same way. */

/** What a path needs, when it is not fit to be one; undefined when it is. */
export function pathProblem(path: string): string | undefined {
  if (!path.startsWith('/')) return 'a path that starts with /';
  if (/[?#]/.test(path)) return 'a path without query or fragment';
  if (!/^([A-Za-z0-9\-._~!$&'()*+,=:@/]|%[0-9A-Fa-f]{2})*$/.test(path)) {
    return "a path of letters, digits and -._~!$&'()*+,=:@, others as %XX";
  }
  const segments = path.split('/').slice(1);
  const literal = segments.at(-1) === '*' ? segments.slice(0, -1) : segments;
  if (literal.some((segment) => segment.includes('*')))
    return 'a path with * as its last segment only, as in /webhooks/*';
  if (path !== '/' && literal.some((segment) => segment === '' || segment === '.' || segment === '..')) {
    return 'a path without empty segments, . and .., and without a / at its end';
  }
  // Of ; / and \ an escape is not the same as the character, or is the same to some applications only.
  const ambiguous = /%(00|25|2f|3b|5c)/i.exec(path)?.[0];
  if (ambiguous !== undefined) return `a path without ${ambiguous}, which applications read differently`;
  const needless = /%(2[de]|3[0-9]|[46][1-9a-f]|5[0-9af]|7[0-9ae])/i.exec(path)?.[0];
  return needless === undefined ? undefined : `${decodeURIComponent(needless)} written plainly instead of ${needless}`;
}

/** Two paths with the same one would take the same deliveries: letter case and escapes tell nothing apart. */
export function comparable(path: string): string {
  return path
    .replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .toLowerCase();
}
