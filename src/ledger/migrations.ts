/**
 * The tables, step by step. A step that was released is never changed: the next one changes what it made. Steps only
 * add, so that the gateways of the version before go on beside those of the new one.
 */
import type { Ask } from './connections.ts';

const STEPS: readonly string[] = [
  `create table hookonce_events (
     key text collate "C" primary key,
     token text not null,
     attempt integer not null,
     floor integer not null default 0,
     unknown boolean not null default false,
     lease_until timestamptz not null,
     done jsonb,
     done_at timestamptz,
     expires_at timestamptz not null
   );
   create index hookonce_events_expiry on hookonce_events (expires_at);
   create table hookonce_versions (
     key text collate "C" primary key,
     applied text collate "C" not null,
     pending text collate "C" not null,
     expires_at timestamptz not null
   );
   create index hookonce_versions_expiry on hookonce_versions (expires_at);
   create table hookonce_sweeps (name text primary key, at timestamptz not null);
   insert into hookonce_sweeps values ('expired', now());`,
];

/** Any number that nobody else takes in the same database. */
const LOCK = 4_766_114_893;

/** Resolves when all steps have been taken, by whomever. One process at a time; needs the right to create tables only if a step is missing. */
export async function migrate(ask: Ask): Promise<void> {
  if ((await taken(ask)) >= STEPS.length) return;
  await ask('begin');
  try {
    await ask("set local statement_timeout = '30s'");
    await ask('select pg_advisory_xact_lock($1)', [LOCK]);
    await ask('create table if not exists hookonce_migrations (step integer primary key, at timestamptz not null)');
    for (let step = await taken(ask); step < STEPS.length; step += 1) {
      await ask(STEPS[step]!);
      await ask('insert into hookonce_migrations values ($1, now())', [step + 1]);
    }
    await ask('commit');
  } catch (error) {
    await ask('rollback').catch(() => undefined);
    throw error;
  }
}

/** How many. */
async function taken(ask: Ask): Promise<number> {
  const [there] = await ask("select to_regclass('hookonce_migrations') is not null as there");
  if (there?.['there'] !== true) return 0;
  const [row] = await ask('select coalesce(max(step), 0) as step from hookonce_migrations');
  return Number(row?.['step']);
}
