/**
 * The statements. Each is one row and one round trip: an insert that, where the row is there, becomes an update of
 * it and always returns it. Two rows in one statement could wait for each other.
 *
 * The clock is the database's, read once for all columns after the row is locked. A row past `expires_at` is as good
 * as none.
 */

/** `c`: now. */
const FROM_CLOCK = 'from (select clock_timestamp() as now offset 0) c';
const GONE = 'e.expires_at <= c.now';
const MINE = 'e.token = excluded.token';
const FREE = 'e.lease_until <= c.now';
/** Whether the statement takes the lease, or moves on its own. */
const TAKES = `(${GONE} or (e.done is null and (${MINE} or ${FREE})))`;

const SEEN = `
  token, attempt, floor, unknown, done,
  extract(epoch from lease_until - clock_timestamp()) * 1000 as lease_ms,
  extract(epoch from expires_at - clock_timestamp()) * 1000 as left_ms`;

/** key, token, attempt at least, lease ms, kept ms, unknown, 1: counts an attempt. */
export const TAKE = `
insert into hookonce_events as e (key, token, attempt, lease_until, expires_at, unknown)
values ($1, $2, $3, clock_timestamp() + $4::float8 * interval '1 ms', clock_timestamp() + $5::float8 * interval '1 ms', $6)
on conflict (key) do update set (token, attempt, floor, unknown, lease_until, done, done_at, expires_at) = (
  select
    case when ${TAKES} then excluded.token else e.token end,
    case
      when ${GONE} then excluded.attempt
      when e.done is not null then e.attempt
      when ${MINE} then greatest(e.attempt, excluded.attempt)
      when ${FREE} then greatest(e.attempt + $7::int, excluded.attempt)
      else e.attempt
    end,
    case when ${GONE} then 0 else e.floor end,
    case when ${TAKES} then excluded.unknown else e.unknown end,
    case when ${TAKES} then c.now + $4::float8 * interval '1 ms' else e.lease_until end,
    case when ${GONE} then null else e.done end,
    case when ${GONE} then null else e.done_at end,
    case when ${TAKES} then c.now + $5::float8 * interval '1 ms' else e.expires_at end
  ${FROM_CLOCK})
returning ${SEEN}`;

/** key, token, attempt, kept ms, done. At or below the floor nothing is written. */
export const COMPLETE = `
insert into hookonce_events as e (key, token, attempt, lease_until, expires_at, done, done_at)
values ($1, $2, $3, clock_timestamp(), clock_timestamp() + $4::float8 * interval '1 ms', $5::jsonb, clock_timestamp())
on conflict (key) do update set (attempt, floor, lease_until, done, done_at, expires_at) = (
  select
    case when ${GONE} then excluded.attempt else greatest(e.attempt, excluded.attempt) end,
    case when ${GONE} then 0 else e.floor end,
    case when ${MINE} then c.now else e.lease_until end,
    case when ${GONE} or (e.done is null and excluded.attempt > e.floor) then excluded.done else e.done end,
    case when ${GONE} or (e.done is null and excluded.attempt > e.floor) then c.now else e.done_at end,
    case
      when ${GONE} or (e.done is null and excluded.attempt > e.floor) then c.now + $4::float8 * interval '1 ms'
      else e.expires_at
    end
  ${FROM_CLOCK})
returning floor`;

/** key, token, attempt, whether it is taken back. A row that then tells nothing has had its time. */
export const RELEASE = `
update hookonce_events set
  token = '',
  lease_until = clock_timestamp(),
  attempt = case when $4 and attempt = $3 then attempt - 1 else attempt end,
  expires_at = case when $4 and attempt = $3 and attempt = 1 and floor = 0 then clock_timestamp() else expires_at end
where key = $1 and token = $2 and done is null`;

/** key. */
export const LOOK = `select ${SEEN} from hookonce_events where key = $1 and expires_at > clock_timestamp()`;

/** key, kept ms, whether a running lease does not matter. */
export const FORGET = `
update hookonce_events set
  floor = attempt, done = null, done_at = null,
  expires_at = greatest(expires_at, clock_timestamp() + $2::float8 * interval '1 ms')
where key = $1 and expires_at > clock_timestamp()
  and ($3 or done is not null or lease_until <= clock_timestamp())
returning ${SEEN}`;

/**
 * key, applied, pending, instead of, kept ms. Returns what was there before: from the row as it was when it was locked,
 * as far as that still shows, for what is read beside it is as old as the beginning of the statement.
 */
export const ORDER = `
insert into hookonce_versions as e (key, applied, pending, expires_at)
values ($1, $2, $3, clock_timestamp() + $5::float8 * interval '1 ms')
on conflict (key) do update set
  applied = case when e.expires_at <= clock_timestamp() then excluded.applied else greatest(e.applied, excluded.applied) end,
  pending = case
    when e.expires_at <= clock_timestamp() then excluded.pending
    when $4 = '' then greatest(e.pending, excluded.pending)
    when e.pending = $4 then excluded.pending
    else e.pending
  end,
  expires_at = greatest(e.expires_at, excluded.expires_at)
returning
  case when applied > $2 then applied else
    (select b.applied from hookonce_versions b where b.key = $1 and b.expires_at > clock_timestamp()) end as applied,
  case when pending > $3 then pending else
    (select b.pending from hookonce_versions b where b.key = $1 and b.expires_at > clock_timestamp()) end as pending`;

/** Whether this connection can write. */
export const WRITABLE =
  "select not pg_is_in_recovery() and current_setting('transaction_read_only') = 'off' as writable";

/** Rows of one table that have had their time; at most so many. */
export const sweepOf = (table: 'hookonce_events' | 'hookonce_versions'): string => `
delete from ${table} where key in (
  select key from ${table} where expires_at < clock_timestamp() - interval '1 minute'
  order by expires_at limit $1 for update skip locked)
returning 1`;

/** How often, in seconds: whoever moves the mark sweeps, and nobody else does in this time. */
export const ELECT = `
update hookonce_sweeps set at = clock_timestamp()
where name = 'expired' and at < clock_timestamp() - $1::float8 * interval '1 s'
returning name`;
