/** The gateway's configuration in these tests: three routes that cover the ways of naming and signing an event. */

export const secrets = {
  github: 'test-secret-github',
  githubOld: 'test-secret-github-old',
  stripe: 'test-secret-stripe',
  custom: 'test-secret-custom',
  admin: 'test-token-admin',
} as const;

/** For `files` of a gateway: what the routes' `{file: …}` refer to. */
export const secretFiles: Record<string, string> = Object.fromEntries(
  Object.entries(secrets).map(([name, secret]) => [`${name}.secret`, `${secret}\n`]),
);

type Section = Readonly<Record<string, unknown>>;

export interface Settings {
  readonly service?: string;
  readonly admin?: Section;
  readonly upstream?: Section;
  readonly redis?: Section;
  readonly claims?: Section;
  /** Merged into every route. */
  readonly route?: Section;
  readonly routes?: readonly Section[];
  readonly log?: Section;
  /** Whole sections, in place of what is here. */
  readonly top?: Section;
}

/** A lock's life of one second: outcomes that take a lock's life to show are seen within the test's patience. */
export const shortLock = { lockTtl: '1s', budget: '300ms', relyOnWatchdog: true } as const;

export const routes: readonly Section[] = [
  {
    name: 'github',
    path: '/github',
    sender: 'github',
    secrets: [{ file: './github.secret' }, { file: './githubOld.secret' }],
  },
  { name: 'stripe', path: '/stripe', sender: 'stripe', secrets: [{ file: './stripe.secret' }] },
  {
    ...{ name: 'custom', path: '/custom/*', secrets: [{ file: './custom.secret' }] },
    verify: { scheme: 'hmac-sha256', header: 'x-signature', encoding: 'hex', prefix: 'sha256=', signed: '{body}' },
    identity: { parts: [{ json: '/id' }] },
  },
];

export function gatewayConfig(
  upstreamUrl: string,
  nodeUrls: readonly string[],
  settings: Settings = {},
): Record<string, unknown> {
  return {
    service: settings.service ?? 'tests',
    ...(settings.admin && { admin: settings.admin }),
    upstream: { url: upstreamUrl, ...settings.upstream },
    ...(nodeUrls.length > 0 && { redis: { nodes: nodeUrls.map((url) => ({ url })), ...settings.redis } }),
    claims: { firstStart: 'trust', ...settings.claims },
    routes: (settings.routes ?? routes).map((route) => ({
      inFlight: { policy: 'reject' },
      ...route,
      ...settings.route,
    })),
    drain: { delay: '0s' },
    log: { level: 'info', ...settings.log },
    ...settings.top,
  };
}
