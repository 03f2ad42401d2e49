import assert from 'node:assert/strict';
import { test } from 'node:test';
import { traceContextOf } from '../../src/core/trace-context.ts';

const traceIdOf = (headers: string[]) => traceContextOf(headers)?.traceId;
const id = '4bf92f3577b34da6a3ce929d0e0e4736';
const whole = `00-${id}-00f067aa0ba902b7-01`;

test('a trace is known by exactly one well-formed traceparent', () => {
  assert.equal(traceIdOf(['TraceParent', whole]), id);
  assert.equal(traceIdOf([]), undefined);
  assert.equal(traceIdOf(['traceparent', whole, 'traceparent', whole]), undefined);
  assert.equal(traceIdOf(['traceparent', whole.toUpperCase()]), undefined);
  assert.equal(traceIdOf(['traceparent', `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`]), undefined);
  assert.equal(traceIdOf(['traceparent', `00-${id}`]), undefined);
});
