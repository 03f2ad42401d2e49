/** What the gateways say, minute by minute, and which alerts must then be firing: these, and no other. */

export interface Case {
  readonly name: string;
  /** By series without its common labels; values in promtool's notation, one a minute. */
  readonly series: Readonly<Record<string, string>>;
  /** When to look. */
  readonly at: string;
  readonly firing: readonly string[];
  /** For a case of silence: the alert that is just not reached. */
  readonly near?: string;
}

const fires = (alert: string, at: string, series: Case['series'], also: readonly string[] = []): Case => ({
  ...{ name: `${alert} fires`, series, at, firing: [alert, ...also].sort() },
});
const quiet = (
  alert: string,
  why: string,
  at: string,
  series: Case['series'],
  firing: readonly string[] = [],
): Case => ({
  ...{ name: `${alert} does not: ${why}`, series, at, firing, near: alert },
});

const deliveries = (outcome: string): string => `hookonce_deliveries_total{route="stripe",outcome="${outcome}"}`;
const state = (node: string, is: string): string => `hookonce_voter_state{node="${node}",state="${is}"}`;

export const CASES: readonly Case[] = [
  fires('HookonceQuorumLost', '3m', { hookonce_quorum_available: '1 0 0 0' }),
  quiet('HookonceQuorumLost', 'it came back within the minute', '3m', { hookonce_quorum_available: '1 0 1 1' }),
  quiet(
    'HookonceQuorumLost',
    'the ledger decides',
    '5m',
    {
      hookonce_quorum_available: '0x10',
      'hookonce_degradation{state="ledger_only"}': '1x10',
    },
    ['HookonceLedgerOnly'],
  ),
  fires('HookonceLedgerOnly', '3m', { 'hookonce_degradation{state="ledger_only"}': '0 1 1 1' }),
  quiet('HookonceLedgerOnly', 'voters are missing, but not a majority', '9m', {
    'hookonce_degradation{state="voters_missing"}': '1x10',
    'hookonce_degradation{state="ledger_only"}': '0x10',
  }),
  fires('HookonceVoterNotCounted', '20m', { [state('a', 'down')]: '1x30', [state('b', 'held')]: '0x30' }),
  quiet('HookonceVoterNotCounted', 'restarted, on hold, back', '20m', {
    [state('a', 'down')]: '1x4 0x20',
    [state('a', 'held')]: '0x4 1x3 0x20',
  }),
  fires('HookonceVoterMayForget', '20m', { 'hookonce_voter_unsafe_eviction{node="a"}': '1x30' }),
  quiet('HookonceVoterMayForget', 'it is mended', '20m', { 'hookonce_voter_unsafe_eviction{node="a"}': '1x10 0x20' }),
  fires('HookonceVoterFull', '10m', { 'hookonce_voter_errors_total{node="a",class="oom"}': '0+2x20' }),
  quiet('HookonceVoterFull', 'other errors', '10m', {
    'hookonce_voter_errors_total{node="a",class="oom"}': '0x20',
    'hookonce_voter_errors_total{node="a",class="timeout"}': '0+2x20',
  }),
  fires('HookonceMissing', '10m', { 'kube_pod_labels{pod="orders-1",label_hookonce_io_config="orders"}': '1x20' }),
  quiet('HookonceMissing', 'it is there, and others do not ask for it', '10m', {
    'kube_pod_labels{pod="orders-1",label_hookonce_io_config="orders"}': '1x20',
    'kube_pod_init_container_info{pod="orders-1",container="hookonce"}': '1x20',
    'kube_pod_labels{pod="other-1"}': '1x20',
  }),
  fires('HookonceVotersDiffer', '20m', { 'hookonce_membership_conflicts_total{node="a"}': '0+3x30' }),
  quiet('HookonceVotersDiffer', 'while a rollout lasts', '20m', {
    'hookonce_membership_conflicts_total{node="a"}': '0+3x4 12x30',
  }),
  fires('HookonceMemoryLost', '30m', { 'hookonce_memory_lost_total{node="a"}': '0x10 1x30' }),
  quiet('HookonceMemoryLost', 'long ago', '90m', { 'hookonce_memory_lost_total{node="a"}': '0x10 1x100' }),
  fires('HookonceLocksLost', '12m', { 'hookonce_lock_failures_total{reason="lost"}': '0x10 2x10' }),
  quiet('HookonceLocksLost', 'held by another is no loss', '12m', {
    'hookonce_lock_failures_total{reason="lost"}': '0x20',
    'hookonce_lock_failures_total{reason="held"}': '0+5x20',
  }),
  fires('HookonceAttemptsRepeated', '80m', {
    'hookonce_attempts_repeated_total{route="stripe"}': '0+1x100',
    [deliveries('refused')]: '0x100',
  }),
  quiet('HookonceAttemptsRepeated', 'each failure is tried again', '80m', {
    'hookonce_attempts_repeated_total{route="stripe"}': '0+1x100',
    [deliveries('refused')]: '0+1x100',
    [deliveries('delivered')]: '0+10x100',
  }),
  fires('HookonceCompletionsPending', '10m', { hookonce_completions_pending: '2x20' }),
  quiet('HookonceCompletionsPending', 'they come and go', '10m', {
    hookonce_completions_pending: '1 0 1 0 1 0 1 0 1 0 1',
  }),
  fires('HookonceUnclaimedForwards', '7m', {
    'hookonce_unclaimed_total{route="stripe",reason="no_quorum"}': '0x5 3x5',
  }),
  quiet('HookonceUnclaimedForwards', 'nothing named these, and the route wants it so', '7m', {
    'hookonce_unclaimed_total{route="stripe",reason="no_identity"}': '0+3x10',
    'hookonce_unclaimed_total{route="stripe",reason="no_quorum"}': '0x10',
  }),
  fires('HookonceClaimsSlow', '25m', {
    'hookonce_claim_duration_seconds_bucket{result="won",le="0.1"}': '0+1x30',
    'hookonce_claim_duration_seconds_bucket{result="won",le="0.25"}': '0+10x30',
    'hookonce_claim_duration_seconds_bucket{result="won",le="+Inf"}': '0+10x30',
  }),
  quiet('HookonceClaimsSlow', 'one in a thousand is slow', '25m', {
    'hookonce_claim_duration_seconds_bucket{result="won",le="0.1"}': '0+999x30',
    'hookonce_claim_duration_seconds_bucket{result="won",le="0.25"}': '0+1000x30',
    'hookonce_claim_duration_seconds_bucket{result="won",le="+Inf"}': '0+1000x30',
  }),
  fires('HookonceDeliveriesFailing', '10m', {
    [deliveries('unavailable')]: '0+20x20',
    [deliveries('delivered')]: '0+80x20',
  }),
  quiet('HookonceDeliveriesFailing', 'a single one, with little traffic', '10m', {
    [deliveries('unavailable')]: '0x5 1x20',
    [deliveries('delivered')]: '0x20',
  }),
  quiet('HookonceDeliveriesFailing', 'what the application refuses is its own answer', '10m', {
    [deliveries('refused')]: '0+10x20',
    [deliveries('delivered')]: '0+90x20',
  }),
  quiet(
    'HookonceDeliveriesFailing',
    'it is over',
    '40m',
    {
      [deliveries('unreachable')]: '0+20x20 400x20',
      [deliveries('delivered')]: '0+80x40',
    },
    ['HookonceDeliveriesFailingSlowly'],
  ),
  fires(
    'HookonceDeliveriesFailingSlowly',
    '80m',
    {
      [deliveries('overloaded')]: '0+8x100',
      [deliveries('delivered')]: '0+92x100',
    },
    ['HookonceOverloaded'],
  ),
  quiet('HookonceDeliveriesFailingSlowly', 'within the budget', '80m', {
    [deliveries('unavailable')]: '0+1x100',
    [deliveries('delivered')]: '0+99x100',
  }),
  fires('HookonceApplicationFailing', '40m', {
    [deliveries('refused')]: '0+5x60',
    [deliveries('delivered')]: '0+5x60',
  }),
  quiet('HookonceApplicationFailing', 'now and then', '40m', {
    [deliveries('refused')]: '0+1x60',
    [deliveries('delivered')]: '0+9x60',
  }),
  fires('HookonceOverloaded', '20m', { [deliveries('overloaded')]: '0+1x30', [deliveries('delivered')]: '0+99x30' }),
  quiet('HookonceOverloaded', 'one burst', '20m', {
    [deliveries('overloaded')]: '0 0 5x30',
    [deliveries('delivered')]: '0+99x30',
  }),
  fires('HookonceSignaturesRejected', '25m', {
    'hookonce_rejections_total{route="stripe",reason="bad_signature"}': '0+5x30',
    [deliveries('rejected')]: '0+5x30',
    [deliveries('delivered')]: '0+5x30',
  }),
  quiet('HookonceSignaturesRejected', 'scanners on no route', '25m', {
    'hookonce_rejections_total{route="unmatched",reason="bad_signature"}': '0+50x30',
    'hookonce_deliveries_total{route="unmatched",outcome="rejected"}': '0+50x30',
    'hookonce_rejections_total{route="stripe",reason="bad_signature"}': '0x30',
    [deliveries('delivered')]: '0+5x30',
  }),
  fires('HookonceDuplicateSurge', '25m', {
    [deliveries('duplicate')]: '0+60x30',
    [deliveries('delivered')]: '0+20x30',
  }),
  quiet('HookonceDuplicateSurge', 'a few, with little traffic', '25m', {
    [deliveries('duplicate')]: '0+2x30',
    [deliveries('delivered')]: '0+1x30',
  }),
  fires('HookonceConfigRefused', '10m', { hookonce_config_last_reload_successful: '1 0x20' }),
  quiet('HookonceConfigRefused', 'mended within five minutes', '10m', {
    hookonce_config_last_reload_successful: '1 0 0 0 1x20',
  }),
  fires('HookonceRestartNeeded', '70m', { hookonce_config_restart_needed: '1x90' }),
  quiet('HookonceRestartNeeded', 'restarted', '70m', { hookonce_config_restart_needed: '1x30 0x60' }),
  fires('HookonceEventLoopBlocked', '20m', { nodejs_eventloop_lag_p99_seconds: '0.5x30' }),
  quiet('HookonceEventLoopBlocked', 'a moment', '20m', { nodejs_eventloop_lag_p99_seconds: '0.01x15 0.9 0.01x10' }),
  fires('HookonceQueueDown', '5m', { hookonce_queue_up: '1 0x10' }),
  quiet('HookonceQueueDown', 'it reconnects', '5m', { hookonce_queue_up: '1 0 1x10' }),
  fires('HookonceQueueNotDurable', '20m', { hookonce_queue_durable: '0x30' }),
  quiet('HookonceQueueNotDurable', 'it is', '20m', { hookonce_queue_durable: '1x30' }),
  fires('HookonceQueueOld', '10m', { hookonce_queue_oldest_seconds: '1000+60x20' }),
  quiet('HookonceQueueOld', 'it is worked off', '10m', { hookonce_queue_oldest_seconds: '1000 950 800 10x20' }),
  fires('HookonceDeadLetters', '12m', {
    'hookonce_queue_attempts_total{route="stripe",result="dead"}': '0x10 1x10',
  }),
  quiet('HookonceDeadLetters', 'failed, and tried again', '12m', {
    'hookonce_queue_attempts_total{route="stripe",result="failed"}': '0+5x20',
    'hookonce_queue_attempts_total{route="stripe",result="dead"}': '7x20',
  }),
  fires('HookonceLedgerDown', '10m', { hookonce_ledger_up: '1 0x20' }),
  quiet('HookonceLedgerDown', 'a failover', '10m', { hookonce_ledger_up: '1 0 0 1x20' }),
  fires('HookonceLedgerBehind', '20m', { hookonce_ledger_behind: '3x30' }),
  quiet('HookonceLedgerBehind', 'caught up', '20m', { hookonce_ledger_behind: '9 8 4 0x30' }),
  fires('HookonceLedgerRowsDropped', '7m', { hookonce_ledger_dropped_total: '0x5 4x5' }),
  quiet('HookonceLedgerRowsDropped', 'none', '7m', { hookonce_ledger_dropped_total: '4x10' }),
];
