import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { senders } from '../../src/senders/index.ts';
import { accepted, complaints, nodes, route, routes, secret } from './config-source.ts';

const verify = (more: string) =>
  `{name: own, path: /own, secrets: [{env: SECRET}], identity: {parts: [{header: x-id}]}, verify: {scheme: hmac-sha256, ${more}}}`;

test('a route is all that must be given: the rest has defaults', () => {
  const { config, warnings } = accepted(routes());
  const { routes: compiled, ...rest } = config;
  assert.deepEqual(rest, {
    service: 'hookonce',
    listen: { host: '0.0.0.0', port: 8081 },
    admin: { host: '0.0.0.0', port: 9090, token: undefined },
    upstream: {
      url: 'http://127.0.0.1:8080',
      host: 'preserve',
      timeoutMs: 15_000,
      connectTimeoutMs: 1000,
      headersTimeoutMs: undefined,
      keepAliveMs: 1000,
      maxInFlight: 128,
      maxWaiting: 512,
      maxWaitMs: 2000,
      maxProxied: 1024,
    },
    limits: {
      bodyBytes: 1024 ** 2,
      memoryBytes: 64 * 1024 ** 2,
      replyBytes: 1024 ** 2,
      headersBytes: 16_384,
      inFlight: 2048,
    },
    redis: { timeoutMs: 100, prefix: 'ho', nodes: [], previous: [] },
    claims: {
      ...{ lockTtlMs: 20_000, budgetMs: 500, maxHoldMs: 900_000, unknownHoldMs: 20_000, retentionMs: 7 * 86_400_000 },
      ...{ firstStart: 'wait', onMemoryLoss: 'recover', recoverAfterMs: 60_000, resyncRate: 20_000 },
    },
    unmatched: 'proxy',
    trustedProxies: [],
    readiness: { requireQuorum: false },
    drain: { delayMs: 5000, graceMs: 25_000 },
    ...{
      queue: undefined,
      ledger: undefined,
      tracing: { otlp: undefined, sample: 1 },
      metrics: { openMetrics: false },
    },
    log: { level: 'info' },
  });
  const { signature: _, ...github } = compiled[0]!;
  assert.deepEqual(github, {
    name: 'github',
    path: '/github',
    sender: 'github',
    secrets: [Buffer.from(secret)],
    secretNames: ['SECRET'],
    identity: {
      parts: [{ from: 'header', names: ['X-GitHub-Delivery'] }],
      bodyHash: false,
      missing: 'reject',
      scope: 'route',
    },
    inFlight: { policy: 'wait', waitMs: 4000, maxWaiters: 32 },
    onUnavailable: 'reject',
    duplicateReply: 'empty',
    successStatus: 200,
    completeOn: [],
    retentionMs: 7 * 86_400_000,
  });
  assert.equal(warnings.length, 1);
  assert.match(warnings[0]!, /^redis\.nodes: none: .*trials/);
});

test('every setting that is written arrives', () => {
  const { config, warnings } = accepted(
    `
service: payments/orders
listen: {host: 127.0.0.1, port: 0}
admin: {host: '::', port: 9091}
upstream: {url: 'https://App.internal', host: upstream, timeout: 2s, connectTimeout: 250ms, headersTimeout: 1s, keepAlive: 4s, maxInFlight: 1e1, maxWaiting: 0, maxWait: 0ms, maxProxied: 7}
limits: {body: 64KiB, memory: 2MiB, reply: 0B, headers: 32KiB, inFlight: 50}
redis:
  timeout: 50ms
  prefix: hooks
  nodes:
    - url: rediss://lock-0.redis
      username: hookonce
      password: {file: ./redis}
      tls: {ca: /tls/ca.crt, cert: /tls/own.crt, key: /tls/own.key}
    - {url: 'redis://[::1]:6380', password: {env: SECRET}}
    - {cluster: ['rediss://lock-2:7000', 'rediss://lock-3:7000']}
  previous: [{url: 'redis://[::1]:6380'}]
claims: {lockTtl: 4s, budget: 400ms, retention: 30d, maxHold: 1m, unknownHold: 90s, firstStart: trust}
routes:
  - name: orders
    path: /webhooks/orders/*
    verify: {scheme: hmac-sha256, header: X-Signature, encoding: base64, prefix: "v1=", separator: ",", signed: "{id}.{timestamp}.{body}", over: decoded, id: X-Id, timestamp: {prefix: "t=", unit: ms, tolerance: 1m}}
    secrets: [{env: SECRET}, {file: /secrets/previous}]
    identity: {parts: [{header: X-Event}, {json: /data/a~1b}, {form: id}], bodyHash: true, missing: reject, scope: route}
    duplicate: {reply: stored, status: 204}
    inFlight: {policy: accept, wait: 7s, maxWaiters: 3}
    limits: {body: 128KiB, inFlight: 5}
    onUnavailable: forward
    completeOn: [410, 422]
    retention: 1h
unmatched: reject
trustedProxies: [10.0.0.0/8, 192.0.2.7, 'fd00::/8']
readiness: {requireQuorum: true}
drain: {delay: 0s, grace: 3s}
log: {level: debug}
`,
    {
      env: { SECRET: secret },
      files: {
        './redis': 'pass',
        '/secrets/previous': 'old',
        '/tls/ca.crt': '-----BEGIN CERTIFICATE-----',
        '/tls/own.crt': '-----BEGIN CERTIFICATE-----\n',
        '/tls/own.key': '-----BEGIN PRIVATE KEY-----\n',
      },
    },
  );
  const none = { username: undefined, password: undefined, tls: undefined, cluster: undefined };
  assert.deepEqual(warnings, []);
  assert.deepEqual(config, {
    service: 'payments/orders',
    listen: { host: '127.0.0.1', port: 0 },
    admin: { host: '::', port: 9091, token: undefined },
    upstream: {
      url: 'https://app.internal:443',
      host: 'upstream',
      timeoutMs: 2000,
      connectTimeoutMs: 250,
      headersTimeoutMs: 1000,
      keepAliveMs: 4000,
      maxInFlight: 10,
      maxWaiting: 0,
      maxWaitMs: 0,
      maxProxied: 7,
    },
    limits: { bodyBytes: 65_536, memoryBytes: 2 * 1024 ** 2, replyBytes: 0, headersBytes: 32_768, inFlight: 50 },
    redis: {
      timeoutMs: 50,
      prefix: 'hooks',
      nodes: [
        {
          ...{ name: 'lock-0.redis:6379', host: 'lock-0.redis', port: 6379, username: 'hookonce', password: 'pass' },
          cluster: undefined,
          tls: {
            ca: Buffer.from('-----BEGIN CERTIFICATE-----'),
            cert: Buffer.from('-----BEGIN CERTIFICATE-----\n'),
            key: Buffer.from('-----BEGIN PRIVATE KEY-----\n'),
          },
        },
        { ...none, name: '[::1]:6380', host: '::1', port: 6380, password: secret },
        {
          ...none,
          name: 'lock-2:7000',
          host: 'lock-2',
          port: 7000,
          cluster: [
            { host: 'lock-2', port: 7000 },
            { host: 'lock-3', port: 7000 },
          ],
          tls: { ca: undefined, cert: undefined, key: undefined },
        },
      ],
      previous: [{ ...none, name: '[::1]:6380', host: '::1', port: 6380 }],
    },
    claims: {
      ...{ lockTtlMs: 4000, budgetMs: 400, maxHoldMs: 60_000, unknownHoldMs: 90_000, retentionMs: 30 * 86_400_000 },
      ...{ firstStart: 'trust', onMemoryLoss: 'recover', recoverAfterMs: 60_000, resyncRate: 20_000 },
    },
    routes: [
      {
        name: 'orders',
        path: '/webhooks/orders/*',
        sender: 'custom',
        signature: {
          scheme: 'hmac-sha256',
          signature: { header: 'X-Signature', prefix: 'v1=', separator: ',', encoding: 'base64' },
          timestamp: { from: { prefix: 't=' }, unit: 'ms', toleranceMs: 60_000 },
          idHeader: 'X-Id',
          signed: '{id}.{timestamp}.{body}',
        },
        signatureOver: 'decoded',
        secrets: [Buffer.from(secret), Buffer.from('old')],
        secretNames: ['SECRET', 'previous'],
        identity: {
          parts: [
            { from: 'header', names: ['X-Event'] },
            { from: 'json', pointer: ['data', 'a/b'] },
            { from: 'form', field: 'id' },
          ],
          bodyHash: true,
          missing: 'reject',
          scope: 'route',
        },
        inFlight: { policy: 'accept', waitMs: 7000, maxWaiters: 3 },
        limits: { bodyBytes: 131_072, inFlight: 5 },
        onUnavailable: 'forward',
        duplicateReply: 'stored',
        successStatus: 204,
        completeOn: [410, 422],
        retentionMs: 3_600_000,
      },
    ],
    unmatched: 'reject',
    trustedProxies: ['10.0.0.0/8', '192.0.2.7', 'fd00::/8'],
    readiness: { requireQuorum: true },
    drain: { delayMs: 0, graceMs: 3000 },
    ...{
      queue: undefined,
      ledger: undefined,
      tracing: { otlp: undefined, sample: 1 },
      metrics: { openMetrics: false },
    },
    log: { level: 'debug' },
  });
});

test('the first configuration of the documentation is accepted', () => {
  const text = readFileSync(new URL('../../docs/first-config.yaml', import.meta.url), 'utf8');
  const { config } = accepted(text, { env: { GITHUB_WEBHOOK_SECRET: secret } });
  assert.deepEqual(
    config.routes.map(({ name, path }) => [name, path]),
    [['github', '/webhooks/github']],
  );
  const shared = text
    .replace(/(?<=\n# service)[^]*/, (rest) => rest.replaceAll('\n# ', '\n'))
    .replace('# service', 'service');
  assert.equal(accepted(shared, { env: { GITHUB_WEBHOOK_SECRET: secret } }).config.redis.nodes.length, 3);
});

test('what may be in memory is measured by what the container may use', () => {
  const { config } = accepted(routes(), { env: { SECRET: secret }, memoryLimit: 160 * 1024 ** 2 });
  assert.equal(config.limits.memoryBytes, 32 * 1024 ** 2);
  assert.equal(config.upstream.maxProxied, 160);
  assert.deepEqual(complaints(routes(), { env: { SECRET: secret }, memoryLimit: 1024 ** 2 }), [
    'limits.memory: found 209715B (its default here) with limits.body 1MiB; needs at least one body',
  ]);
});

test('anchors, aliases and merge keys are resolved', () => {
  const { config } = accepted(`
routes:
  - &one {name: a, path: /a, sender: github, secrets: [{env: SECRET}], inFlight: &wait {wait: 1s}}
  - {<<: *one, name: b, path: /b}
  - {name: c, path: /c, sender: stripe, secrets: [{env: SECRET}], inFlight: *wait}
`);
  assert.deepEqual(
    config.routes.map(({ name, sender, inFlight }) => [name, sender, inFlight.waitMs]),
    [
      ['a', 'github', 1000],
      ['b', 'github', 1000],
      ['c', 'stripe', 1000],
    ],
  );
});

/** What is written, and the whole of what is said about it. */
const wrong: readonly (readonly [string, ...string[]])[] = [
  // The file as a whole.
  ['', 'the configuration: found nothing; needs a mapping with at least routes'],
  ['# nothing\n', 'the configuration: found nothing; needs a mapping with at least routes'],
  ['text', 'the configuration: found "text"; needs a mapping with at least routes'],
  ['- routes', 'the configuration: found a list; needs a mapping with at least routes'],
  ['log: {level: info}', 'routes: found nothing; needs a list'],
  ['routes: []', 'routes: found an empty list; needs at least 1 entry'],
  ['routes: {name: a}', 'routes: found a mapping; needs a list'],
  ['routes: [github]', 'routes[0]: found "github"; needs a mapping'],

  // Numbers, texts, choices.
  [`${routes()}listen: {port: abc}`, 'listen.port: found "abc"; needs a whole number from 0 to 65535'],
  [`${routes()}listen: {port: 8081.5}`, 'listen.port: found 8081.5; needs a whole number from 0 to 65535'],
  [`${routes()}listen: {port: 1e6}`, 'listen.port: found 1000000; needs a whole number from 0 to 65535'],
  [`${routes()}listen: {port: -1}`, 'listen.port: found -1; needs a whole number from 0 to 65535'],
  [`${routes()}listen: {host: 'http://x'}`, 'listen.host: found "http://x"; needs an IP address or a host name'],
  [
    `${routes()}upstream: {maxInFlight: 12345678901234567890}`,
    'upstream.maxInFlight: found 12345678901234567000; needs a whole number from 1 to 100000',
  ],
  [
    `${routes()}upstream: {maxInFlight: .inf}`,
    'upstream.maxInFlight: found Infinity; needs a whole number from 1 to 100000',
  ],
  [
    `${routes()}log: {level: loud}`,
    'log.level: found "loud"; needs one of trace, debug, info, warn, error, fatal, silent',
  ],
  [`${routes()}unmatched: pass`, 'unmatched: found "pass"; needs one of proxy, reject'],
  ...['10.0.0.0/33', '::1/129', 'proxy.internal', '10.0.0', '10.0.0.0/', '10.0.0.0/8/8'].map(
    (network): [string, string] => [
      `${routes()}trustedProxies: ['${network}']`,
      `trustedProxies[0]: found "${network}"; needs an address or network, such as 10.0.0.0/8 or fd00::/8`,
    ],
  ),
  [`${routes()}trustedProxies: 10.0.0.0/8`, 'trustedProxies: found "10.0.0.0/8"; needs a list'],
  [`${routes()}limits: {headers: 100B}`, 'limits.headers: found "100B"; needs at least 1KiB'],
  [`${routes()}claims: {relyOnWatchdog: yes}`, 'claims.relyOnWatchdog: found "yes"; needs true or false'],
  [`${routes()}claims: {firstStart: 1}`, 'claims.firstStart: found 1; needs one of wait, trust'],
  [`${routes()}limits:\n`, 'limits: found nothing; needs a mapping'],
  [
    `${routes()}service: 1e6`,
    'service: found 1000000; needs a name such as payments/orders: lower-case letters, digits and . _ / - inside (a text; numbers need quotes)',
  ],
  [
    `${routes()}service: Payments`,
    'service: found "Payments"; needs a name such as payments/orders: lower-case letters, digits and . _ / - inside',
  ],
  [`${routes()}redis: {prefix: '{a}'}`, 'redis.prefix: found "{a}"; needs 1 to 32 letters, digits and _ . : -'],

  // Durations and sizes.
  [
    `${routes()}upstream: {timeout: 15}`,
    'upstream.timeout: found 15; needs a number with its unit: 300ms, 15s, 5m, 2h or 7d',
  ],
  [
    `${routes()}upstream: {timeout: '15'}`,
    'upstream.timeout: found "15"; needs a number with its unit: 300ms, 15s, 5m, 2h or 7d',
  ],
  [
    `${routes()}upstream: {timeout: 15 s}`,
    'upstream.timeout: found "15 s"; needs a number with its unit: 300ms, 15s, 5m, 2h or 7d',
  ],
  [
    `${routes()}upstream: {timeout: 15sec}`,
    'upstream.timeout: found "15sec"; needs a number with its unit: 300ms, 15s, 5m, 2h or 7d',
  ],
  [`${routes()}upstream: {timeout: 0s}`, 'upstream.timeout: found "0s"; needs at least 1ms'],
  [`${routes()}upstream: {maxWait: 25d}`, 'upstream.maxWait: found "25d"; needs at most 24d'],
  [`${routes()}redis: {timeout: 5ms}`, 'redis.timeout: found "5ms"; needs at least 10ms'],
  [
    `${routes()}limits: {body: 1048576}`,
    'limits.body: found 1048576; needs a number with its unit: 512B, 64KiB, 1MiB or 1GiB',
  ],
  [
    `${routes()}limits: {body: 1MB}`,
    'limits.body: found "1MB"; needs a number with its unit: 512B, 64KiB, 1MiB or 1GiB',
  ],
  [`${routes()}limits: {body: 2GiB}`, 'limits.body: found "2GiB"; needs at most 1GiB'],

  // Unknown names.
  [`${routes()}limit: {body: 1MiB}`, 'limit: unknown name; did you mean limits?'],
  [`${routes()}upstream: {conectTimeout: 1s}`, 'upstream.conectTimeout: unknown name; did you mean connectTimeout?'],
  [`${routes()}drain: {after: 1s}`, 'drain.after: unknown name; known here: delay, grace'],
  [routes('inFlight: {polcy: reject}'), 'routes[0].inFlight.polcy: unknown name; did you mean policy?'],
  [
    routes('identity: {parts: [{hedaer: x}], bodyHash: true}'),
    'routes[0].identity.parts[0].hedaer: unknown name; did you mean header?',
    'routes[0].identity.parts[0]: found a mapping; needs exactly one of header, json and form',
  ],
  [
    `${routes()}"a b": 1`,
    '["a b"]: unknown name; known here: service, listen, admin, upstream, limits, redis, claims, routes, unmatched, trustedProxies, queue, ledger, readiness, drain, tracing, metrics, log',
  ],

  // Addresses.
  [
    `${routes()}upstream: {url: '127.0.0.1:8080'}`,
    'upstream.url: found "127.0.0.1:8080"; needs a URL such as http://host:port',
  ],
  [
    `${routes()}upstream: {url: 'unix:app.sock'}`,
    'upstream.url: found "unix:app.sock"; needs unix: and an absolute path of at most 107 characters',
  ],
  [
    `${routes()}upstream: {url: 'ftp://app'}`,
    'upstream.url: found "ftp://app"; needs a URL such as http://host:port; allowed schemes: http, https',
  ],
  [
    `${routes()}upstream: {url: 'http://app/path'}`,
    'upstream.url: found "http://app/path"; needs a URL such as http://host:port, without path, query or fragment',
  ],
  [
    `${routes()}upstream: {url: 'http://app:99999'}`,
    'upstream.url: found "http://…"; needs a URL such as http://host:port',
  ],
  [
    `${routes()}upstream: {url: 'http://me:pass@app'}`,
    'upstream.url: found "http://…"; needs a URL without user and password',
  ],
  [
    `${routes()}service: a\n${nodes('tcp://a')}`,
    'redis.nodes[0].url: found "tcp://a"; needs a URL such as redis://host:port; allowed schemes: redis, rediss',
  ],
  [
    `${routes()}service: a\n${nodes('redis://a/3')}`,
    'redis.nodes[0].url: found "redis://a/3"; needs a URL such as redis://host:port, without path, query or fragment',
  ],
  [
    `${routes()}service: a\n${nodes('redis://a?password=hunter2')}`,
    'redis.nodes[0].url: found "redis://…"; needs a URL such as redis://host:port, without path, query or fragment',
  ],
  [
    `${routes()}service: a\n${nodes('redis://me:hunter2@a:6379')}`,
    'redis.nodes[0].url: found "redis://…"; needs a URL without user and password: use username, and password: {file: …} or {env: …}',
  ],

  // Nodes.
  [
    `${routes()}${nodes('redis://a')}`,
    'service: found nothing, but redis.nodes is set; needs the name under which gateways share events',
  ],
  [
    `${routes()}service: a\n${nodes(...'abcdefghi'.split('').map((name) => `redis://${name}`))}`,
    'redis.nodes: found 9 nodes; needs 1, 3, 5 or 7',
  ],
  [
    `${routes()}service: a\nredis: {nodes: [{url: 'redis://a', username: me}]}`,
    'redis.nodes[0].username: found a user without password; needs password: {file: …} or {env: …} beside it',
  ],
  [
    `${routes()}service: a\nredis: {nodes: [{url: 'redis://a', tls: {}}]}`,
    'redis.nodes[0].tls: found beside a redis:// url; needs url: rediss://…, or no tls',
  ],
  [
    `${routes()}service: a\nredis: {nodes: [{url: 'rediss://a', tls: {ca: /none, key: /pem}}]}`,
    'redis.nodes[0].tls: found key without cert; needs both or neither',
    'redis.nodes[0].tls.ca: file /none cannot be read (no such file)',
    'redis.nodes[0].tls.key: file /pem holds no PEM block (-----BEGIN …)',
  ],

  // Routes.
  [
    'routes: [{}]',
    'routes[0].name: found nothing; needs 1 to 63 lower-case letters, digits and - (a text; numbers need quotes)',
    'routes[0].path: found nothing; needs a text (numbers need quotes)',
  ],
  [routes('name: A_b'), 'routes[0].name: found "A_b"; needs 1 to 63 lower-case letters, digits and -'],
  [
    routes('name: unmatched'),
    'routes[0].name: found "unmatched", which stands for requests on no route; needs another name',
  ],
  [routes('', 'path: /b'), 'routes[1].name: found "github", which routes[0].name has already; needs another'],
  [
    routes('', 'name: b, path: /GitHub'),
    'routes[1].path: found "/GitHub", which routes[0].path has already; needs another',
  ],
  [routes('path: hooks'), 'routes[0].path: found "hooks"; needs a path that starts with /'],
  [routes("path: '/a?b'"), 'routes[0].path: found "/a?b"; needs a path without query or fragment'],
  [routes('path: /a*'), 'routes[0].path: found "/a*"; needs a path with * as its last segment only, as in /webhooks/*'],
  [
    routes('path: /*/b'),
    'routes[0].path: found "/*/b"; needs a path with * as its last segment only, as in /webhooks/*',
  ],
  [
    routes('path: /a//b'),
    'routes[0].path: found "/a//b"; needs a path without empty segments, . and .., and without a / at its end',
  ],
  [
    routes('path: /a/'),
    'routes[0].path: found "/a/"; needs a path without empty segments, . and .., and without a / at its end',
  ],
  [
    routes('path: /a/../b'),
    'routes[0].path: found "/a/../b"; needs a path without empty segments, . and .., and without a / at its end',
  ],
  [routes('path: /%61'), 'routes[0].path: found "/%61"; needs a written plainly instead of %61'],
  [
    routes('path: /a b'),
    'routes[0].path: found "/a b"; needs a path of letters, digits and -._~!$&\'()*+,=:@, others as %XX',
  ],
  [
    routes('path: /a%2Fb'),
    'routes[0].path: found "/a%2Fb"; needs a path without %2F, which applications read differently',
  ],
  [
    routes('path: /a%20b', 'name: b, path: /A%20B'),
    'routes[1].path: found "/A%20B", which routes[0].path has already; needs another',
  ],
  [routes('sender: strpie'), 'routes[0].sender: found "strpie"; needs a sender that is known; did you mean stripe?'],
  [
    routes('sender: nobody'),
    `routes[0].sender: found "nobody"; needs one of ${[...senders.keys(), 'acme'].join(', ')}, or verify instead`,
  ],
  [routes('verify: {scheme: none}'), 'routes[0]: found both sender and verify; needs exactly one of them'],
  ['routes: [{name: a, path: /a}]', 'routes[0]: found neither sender nor verify; needs exactly one of them'],
  [
    routes('secrets: []'),
    'routes[0].secrets: found nothing; needs at least one reference, {file: /path/to/secret} or {env: NAME}',
  ],
  [routes('identity: {}'), 'routes[0].identity: found neither parts nor bodyHash; needs something that names an event'],
  [
    routes('identity: {parts: [{json: id}]}'),
    'routes[0].identity.parts[0].json: found "id"; needs a JSON pointer such as /data/id',
  ],
  [
    routes('identity: {parts: [{json: /a~2}]}'),
    'routes[0].identity.parts[0].json: found "/a~2"; needs a JSON pointer such as /data/id',
  ],
  [
    routes('identity: {parts: [{header: a, json: /b}]}'),
    'routes[0].identity.parts[0]: found a mapping; needs exactly one of header, json and form',
  ],
  [
    routes('identity: {parts: [{header: "a b"}]}'),
    'routes[0].identity.parts[0].header: found "a b"; needs the name of a header, such as x-event-id',
  ],
  [routes('completeOn: [200]'), 'routes[0].completeOn[0]: found 200; needs a whole number from 300 to 599'],
  [routes('duplicate: {status: 404}'), 'routes[0].duplicate.status: found 404; needs a whole number from 200 to 299'],

  // A signature of one's own.
  [
    `routes: [${verify('signed: "{body}"')}]`,
    'routes[0].verify.header: found nothing; needs the header that holds the signature',
  ],
  [
    `routes: [${verify('header: x-sig, signed: "{timestamp}.{body}"')}]`,
    'routes[0].verify.signed: found "{timestamp}.{body}": {timestamp} needs to know where the timestamp stands',
  ],
  [
    `routes: [${verify('header: x-sig, signed: "{stamp}.{body}"')}]`,
    'routes[0].verify.signed: found "{stamp}.{body}": {stamp} is unknown; there are {body}, {timestamp}, {id}, {method}, {url}',
  ],
  [
    `routes: [${verify('header: x-sig, signed: "{timestamp}.{body}", timestamp: {}')}]`,
    'routes[0].verify.timestamp: found neither header nor prefix; needs a header, or a prefix among the items that verify.separator parts',
  ],
  [
    `routes: [${verify('header: x-sig, signed: "{timestamp}.{body}", timestamp: {prefix: "t="}')}]`,
    'routes[0].verify.timestamp: found prefix without verify.separator; needs a header, or a prefix among the items that verify.separator parts',
  ],
  [
    `routes: [${verify('header: x-sig').replace('hmac-sha256', 'md5')}]`,
    'routes[0].verify.scheme: found "md5"; needs one of hmac-sha256, hmac-sha1, hmac-sha512, ed25519, ecdsa-p256, token, none',
  ],
  [
    `routes: [${verify('header: x-sig').replace(/identity: \{.*?\]\}, /, '')}]`,
    'routes[0].identity: found nothing; needs parts or bodyHash, because verify does not say what names an event',
  ],
  [
    `routes: [${verify('header: x-sig').replace('hmac-sha256', 'none')}]`,
    'routes[0].verify.scheme: found none beside settings of a signature; needs hmac-sha256, or none alone',
  ],
  [
    'routes: [{name: a, path: /a, verify: {scheme: none}, secrets: [{env: SECRET}], identity: {bodyHash: true}}]',
    'routes[0].secrets: found secrets, but verify.scheme is none; needs a scheme that uses them, or no secrets',
  ],
];

for (const [text, ...said] of wrong) {
  test(`refused: ${text.trim().replaceAll('\n', ' ').slice(0, 150)}`, () => {
    assert.deepEqual(complaints(text, { env: { SECRET: secret }, files: { '/pem': 'no pem' } }), said);
  });
}

test('B91: misspelt names are all named with their full path and the nearest right one, without their values', () => {
  const said = complaints(`
service: a
upstream: {timeoutMS: 500}
redis: {nodes: [{url: 'redis://a'}, {url: 'redis://b', pasword: hunter2}, {url: 'redis://c'}]}
${routes('secrett: hunter2')}`);
  assert.deepEqual(said, [
    'upstream.timeoutMS: unknown name; did you mean timeout?',
    'redis.nodes[1].pasword: unknown name; did you mean password?',
    'routes[0].secrett: unknown name; did you mean secrets?',
  ]);
});

test('everything that is wrong is said at once: in the text, between settings and behind references', () => {
  const said = complaints(`
log: {level: loud}
upstream: {timeout: 30s}
claims: {budget: 7s}
redis: {nodes: [{url: 'redis://a', pasword: x}, {url: 'redis://b'}, {url: 'redis://B:6379'}, {url: 'redis://d'}]}
routes: [${route('secrets: [{env: MISSING}]')}, ${route('path: /b, secrets: [{env: GONE}]')}, {name: c}]
`);
  assert.deepEqual(said, [
    'redis.nodes[0].pasword: unknown name; did you mean password?',
    'routes[2].path: found nothing; needs a text (numbers need quotes)',
    'log.level: found "loud"; needs one of trace, debug, info, warn, error, fatal, silent',
    'redis.nodes: found 4 nodes, of which 1 may fail, no more than of 3; needs 1, 3, 5 or 7',
    'redis.nodes[2].url: found b:6379, which redis.nodes[1] is already; needs another Redis, as one cannot vote twice',
    'routes[1].name: found "github", which routes[0].name has already; needs another',
    'routes[0].secrets[0]: environment variable MISSING is not set',
    'routes[1].secrets[0]: environment variable GONE is not set',
    'claims.budget: found 7s with claims.lockTtl 20s; needs less than a third of claims.lockTtl, which is 6666ms',
    'claims.lockTtl: found 20s with upstream.timeout 30s and claims.budget 7s; needs at least their sum + 1s, which is 38s, or claims.relyOnWatchdog: true',
  ]);
});

test('a slip in a route does not hide that its sender is unknown and its secrets are missing', () => {
  assert.deepEqual(complaints(routes('mode: asyc, sender: githb, secrets: [{env: MISSING}, {env: SECRET}, 5]')), [
    'routes[0].secrets[2]: found a number (not shown); needs a reference, {file: /path/to/secret} or {env: NAME}; a secret is never written here itself',
    'routes[0].mode: found "asyc"; needs one of sync, async',
    'routes[0].sender: found "githb"; needs a sender that is known; did you mean github?',
    'routes[0].secrets[0]: environment variable MISSING is not set',
  ]);
  assert.deepEqual(complaints('routes: [5, {sender: {}}, []]').length, 5);
});

test('a name that JavaScript gives a meaning to is a name like any other', () => {
  for (const name of ['__proto__', 'constructor', 'toString']) {
    assert.match(
      complaints(`${routes()}${name}: {a: 1}`)[0]!,
      new RegExp(`^${name}: unknown name; known here: service`),
    );
  }
});

test('B60: an even number of nodes is refused with what it tolerates, and one Redis cannot vote twice', () => {
  const of = (...urls: string[]) => complaints(`service: a\n${routes()}${nodes(...urls)}`);
  assert.deepEqual(of('redis://a', 'redis://b'), [
    'redis.nodes: found 2 nodes, of which 0 may fail, no more than of 1; needs 1, 3, 5 or 7',
  ]);
  assert.deepEqual(of('redis://a', 'redis://b', 'redis://c', 'redis://d'), [
    'redis.nodes: found 4 nodes, of which 1 may fail, no more than of 3; needs 1, 3, 5 or 7',
  ]);
  for (const again of ['redis://a:6379', 'REDIS://A', 'rediss://a.:6379/']) {
    assert.deepEqual(of('redis://a', 'redis://b', again), [
      'redis.nodes[2].url: found a:6379, which redis.nodes[0] is already; needs another Redis, as one cannot vote twice',
    ]);
  }
  assert.deepEqual(of('redis://127.0.0.1', 'redis://b', 'redis://127.1'), [
    'redis.nodes[2].url: found 127.0.0.1:6379, which redis.nodes[0] is already; needs another Redis, as one cannot vote twice',
  ]);
  const { warnings } = accepted(`service: a\n${routes()}${nodes('redis://a')}`);
  assert.deepEqual(warnings, [
    'redis.nodes: one node: while it is down nothing can be claimed; of three, one may fail',
  ]);
});
