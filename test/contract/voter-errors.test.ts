/** Every message that Redis, Node and the client were seen to give, and its class. Those that can be provoked are, in `voter-faults.test.ts`. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { errorClass } from '../../src/redis/errors.ts';

const seen: Readonly<Record<string, readonly string[]>> = {
  noscript: ['NOSCRIPT No matching script. Please use EVAL.'],
  oom: [
    "OOM command not allowed when used memory > 'maxmemory'.",
    // As Redis 6 has it from inside a script, and from outside.
    "@user_script: 27: -OOM command not allowed when used memory > 'maxmemory'.",
    "ERR Error running script (call to f_0123456789abcdef0123456789abcdef01234567): @user_script:27: @user_script: 27: -OOM command not allowed when used memory > 'maxmemory'.",
    "-OOM command not allowed when used memory > 'maxmemory'.",
  ],
  readonly: [
    "READONLY You can't write against a read only replica.",
    "@user_script: 27: -READONLY You can't write against a read only replica.",
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
  ],
  loading: ['LOADING Redis is loading the dataset in memory'],
  auth: [
    'NOAUTH Authentication required.',
    'NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used',
    'WRONGPASS invalid username-password pair or user is disabled.',
    "NOPERM User limited has no permissions to run the 'script|load' command",
  ],
  moved: [
    'MOVED 3999 127.0.0.1:6381',
    'ASK 3999 127.0.0.1:6381',
    "CROSSSLOT Keys in request don't hash to the same slot",
    'CLUSTERDOWN The cluster is down',
    'TRYAGAIN Multiple keys request during rehashing of slot',
  ],
  misconf: [
    '@user_script: 27: -MISCONF Redis is configured to save RDB snapshots, but it is currently not able to persist on disk.',
    'MISCONF Redis is configured to save RDB snapshots, but it is currently unable to persist to disk.',
    'NOREPLICAS Not enough good replicas to write.',
  ],
  busy: [
    'BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.',
    'UNKILLABLE Sorry the script already executed write commands against the dataset.',
  ],
  format: [
    'WRONGTYPE Operation against a key holding the wrong kind of value',
    '@user_script: 18: WRONGTYPE Operation against a key holding the wrong kind of value',
    'user_script:13: FORMAT unknown lock format',
  ],
  tls: [
    'self-signed certificate in certificate chain',
    "Hostname/IP does not match certificate's altnames: IP: 127.0.0.1 is not in the cert's list: ",
    'C0:error:0A00010B:SSL routines:tls_validate_record_header:wrong version number:../ssl/record/methods/tlsany_meth.c:78:',
    'Client network socket disconnected before secure TLS connection was established',
  ],
  timeout: ['Command timed out', 'connect ETIMEDOUT', 'connect ETIMEDOUT 10.0.0.1:6379'],
  refused: [
    'connect ECONNREFUSED 127.0.0.1:1',
    'getaddrinfo ENOTFOUND lock-0.redis',
    'getaddrinfo EAI_AGAIN lock-0.redis',
    'connect EHOSTUNREACH 10.0.0.1:6379',
  ],
  disconnected: [
    'Connection is closed.',
    'read ECONNRESET',
    'write EPIPE',
    "Stream isn't writeable and enableOfflineQueue options is false",
    'Reached the max retries per request limit (which is 0). Refer to "maxRetriesPerRequest" option for details.',
  ],
  other: ['', 'ERR unknown command', 'something NOSCRIPT else'],
};

for (const [expected, messages] of Object.entries(seen)) {
  for (const message of messages) test(`${expected}: ${message}`, () => assert.equal(errorClass(message), expected));
}
