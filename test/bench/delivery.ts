/** The delivery of every measurement: 1.5 KB of JSON, signed as GitHub signs. The signature does not cover the id, so it is made once. */
import { github } from '../../src/demo/signers.ts';
import { secrets } from '../support/config.ts';
import { headerLines } from '../support/raw-client.ts';

const BODY = JSON.stringify({ ref: 'refs/heads/main', text: 'x'.repeat(1_536 - 36) });

/** Bytes of a delivery of the event `id`, one character each. */
export function deliveryOf(id: string): string {
  return `${before}${id}${after}`;
}

const PLACE = '<id>';
const { headers, body } = github(secrets.github, PLACE, Buffer.from(BODY));
const [before = '', after = ''] = [
  ...['POST /github HTTP/1.1', 'Host: bench.example', ...headerLines(headers)],
  ...[`Content-Length: ${body.length}`, '', body.toString('latin1')],
]
  .join('\r\n')
  .split(PLACE);
