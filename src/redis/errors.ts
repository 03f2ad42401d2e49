/** What Redis and its client say when something is wrong, as a closed set of classes (a metric label). */

const CLASSES: readonly (readonly [RegExp, string])[] = [
  [/^NOSCRIPT/, 'noscript'],
  [/^OOM/, 'oom'],
  [/^READONLY/, 'readonly'],
  [/^LOADING/, 'loading'],
  [/^(NOAUTH|WRONGPASS|NOPERM)/, 'auth'],
  [/^(MOVED|ASK|CROSSSLOT|CLUSTERDOWN|TRYAGAIN)/, 'moved'],
  [/^(MISCONF|NOREPLICAS)/, 'misconf'],
  [/^(BUSY|UNKILLABLE)/, 'busy'],
  [/^(WRONGTYPE|FORMAT)|FORMAT unknown/, 'format'],
  [/^MASTERDOWN/, 'readonly'],
  [/certificate|\bSSL\b|\bTLS\b/, 'tls'],
  [/timed out|ETIMEDOUT/, 'timeout'],
  [/ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH/, 'refused'],
  [/Connection is closed|ECONNRESET|EPIPE|max retries|isn't writeable/i, 'disconnected'],
];

/** Before version 7 Redis says where in the script it was, in front of what it was; a minus sign may have stayed. */
const BEFORE = /^(?:ERR )?(?:Error running script \(call to f_\w+\): )?(?:@?user_script: ?\d+: ?)*-?/;

export function errorClass(message: string): string {
  const what = message.replace(BEFORE, '');
  for (const [pattern, name] of CLASSES) if (pattern.test(what)) return name;
  return 'other';
}
