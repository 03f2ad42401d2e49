/** Requests with most parts as they should be, so that the odd ones get as far as they can. For fast-check. */
import * as fc from 'fast-check';

const word = fc.string({ unit: 'binary-ascii', maxLength: 12 });

/** Nearly always one of `usual`; else one that is odd, or noise. */
function part(
  usual: readonly string[],
  odd: readonly string[],
  other: fc.Arbitrary<string> = word,
): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 40, arbitrary: fc.constantFrom(...usual) },
    { weight: 4, arbitrary: fc.constantFrom(...odd) },
    { weight: 1, arbitrary: other },
  );
}

const method = part(
  ['POST', 'POST', 'POST', 'GET', 'PUT', 'HEAD', 'OPTIONS'],
  ['CONNECT', 'TRACE', 'PROPFIND', 'PRI', 'post', '', 'POST POST'],
);

const target = part(
  ['/github', '/custom/a', '/stripe?x=%00', '/hook', '/all/x', '/elsewhere'],
  [
    ...['/GITHUB', '/./github', '/a/../github', '/%67ithub', '//github', '/github/', '*', '', '/%', '/%zz', '/%c0%af'],
    ...[
      'http://elsewhere.example/github',
      '//elsewhere.example/github',
      'elsewhere.example:443',
      '/ü',
      '/a\\b',
      '/a#b',
    ],
    ...[`/${'a/'.repeat(300)}`, `/${'.'.repeat(3_000)}`, `/${'x'.repeat(20_000)}`],
  ],
  word.map((text) => `/${text}`),
);

const version = part(
  ['HTTP/1.1', 'HTTP/1.1', 'HTTP/1.1', 'HTTP/1.0'],
  ['HTTP/0.9', 'HTTP/2.0', 'HTTP/1.1 x', 'http/1.1', ''],
);
const lineEnd = part(['\r\n'], ['\n', '\r', '\r\r\n'], fc.constant(''));

/** `=`: the length of what follows. */
const length = part(
  ['='],
  ['0', '5', '-1', '+5', '5, 5', '5, 6', '0x5', '1e3', '99999999999999999999', '1048577', '', ' 5'],
);
const host = part(['g.example'], ['', 'a, b', 'g:99999', '[::1]', 'elsewhere.example/x']);
const coding = part(
  ['chunked'],
  ['Chunked', 'chunked, chunked', 'identity', 'gzip, chunked', 'chunked, gzip', 'x\tchunked'],
);
const zeros = `sha256=${'0'.repeat(64)}`;

/** Usual and odd values of headers that somebody on the way looks at. */
const HEADERS: readonly (readonly [string, fc.Arbitrary<string>])[] = [
  ['Connection', part(['close', 'keep-alive'], ['upgrade', 'close, Host', 'Content-Length', 'Transfer-Encoding'])],
  ['Upgrade', part(['websocket', 'h2c'], ['TLS/1.3', ''])],
  ['Expect', part(['100-continue'], ['200-ok', ''])],
  [
    'Content-Type',
    part(
      ['application/json', 'application/x-www-form-urlencoded'],
      ['multipart/form-data; boundary=', 'json', 'a/b/c', ''],
    ),
  ],
  ['Content-Encoding', part(['gzip', 'br', 'deflate', 'zstd'], ['gzip, gzip', 'identity', ''])],
  ['X-Hub-Signature-256', part([zeros], ['sha256=', 'sha256=00', `sha256=${'é'.repeat(64)}`])],
  ['X-Signature', part([zeros], ['sha256=', zeros.toUpperCase()])],
  ['X-GitHub-Delivery', part(['one'], ['', 'a'.repeat(5_000)])],
  ['Stripe-Signature', part(['t=1,v1=00'], ['t=,v1=', 't=NaN,v1=zz,v1=', ','.repeat(500), `t=${'9'.repeat(400)}`])],
  ['X-Forwarded-For', part(['127.0.0.1'], ['::1, ::2', ','.repeat(100)])],
  ['Trailer', fc.constant('X-Late')],
  ['X-Large', fc.nat(20_000).map((size) => 'x'.repeat(size))],
  ['Host', host],
  ['Content-Length', length],
  ['Content-Length ', length],
  ['Transfer-Encoding', coding],
];

const headerLine = fc.oneof(
  { weight: 12, arbitrary: fc.oneof(...HEADERS.map(([name, value]) => value.map((text) => `${name}: ${text}`))) },
  {
    weight: 1,
    arbitrary: fc.tuple(fc.constantFrom('', ' ', ':', 'X: a\r\n '), word).map(([first, text]) => `${first}${text}: x`),
  },
);

const bytes = fc.uint8Array({ maxLength: 300 }).map((given) => Buffer.from(given));
const json = fc.constantFrom('{', '[[[[', '{"id":', '{"id":1}', '"\\ud800"').map((text) => Buffer.from(text));

const chunks = (() => {
  // `=`: as long as it is.
  const odd = ['1', 'A;x=y', '00000005', '-1', 'ffffffffffffffff', '5;', ';', 'g', '', ' 5', `5;${'x'.repeat(20_000)}`];
  const chunk = fc.tuple(part(['='], odd), bytes, part(['\r\n'], ['\n', ''])).map(([stated, content, end]) => {
    const size = stated === '=' ? content.length.toString(16) : stated;
    return Buffer.concat([Buffer.from(`${size}\r\n`), content, Buffer.from(end)]);
  });
  const last = part(
    ['0\r\n\r\n', '0\r\nX-Late: x\r\n\r\n'],
    ['0\r\n', ''],
    fc.constant('0\r\nContent-Length: 5\r\n\r\n'),
  );
  return fc
    .tuple(fc.array(chunk, { maxLength: 4 }), last)
    .map(([all, end]) => Buffer.concat([...all, Buffer.from(end)]));
})();

/** Body, and the line that says where it ends. */
const framed = fc.oneof(
  fc.tuple(
    fc.oneof(bytes, json),
    length.map((text) => `Content-Length: ${text}`),
  ),
  fc.tuple(
    fc.oneof({ weight: 4, arbitrary: chunks }, bytes),
    coding.map((text) => `Transfer-Encoding: ${text}`),
  ),
  fc.tuple(fc.constant(Buffer.alloc(0)), fc.constant('X-None: x')),
);

export function requestLike(): fc.Arbitrary<Buffer> {
  const more = fc.array(headerLine, { maxLength: 5 });
  return fc
    .tuple(method, target, version, host, more, framed, lineEnd)
    .map(([verb, path, http, name, lines, [body, framing], end]) => {
      const all = [`Host: ${name}`, ...lines, framing].map((line) =>
        line.replace('Length: =', `Length: ${body.length}`),
      );
      return Buffer.concat([Buffer.from([`${verb} ${path} ${http}`, ...all, '', ''].join(end), 'latin1'), body]);
    });
}
