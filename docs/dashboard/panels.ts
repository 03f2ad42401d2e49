/** The panels of the dashboard: what each asks Prometheus, in which unit, and what it tells in a sentence. */

export interface Panel {
  readonly kind: 'stat' | 'lines' | 'states';
  readonly title: string;
  readonly description: string;
  readonly unit: string;
  readonly queries: readonly Query[];
  /** Of 24; 8 unless said. */
  readonly width?: number;
  /** From which values on it is orange or red; without them the colour says nothing. */
  readonly steps?: readonly { readonly from: number; readonly color: 'green' | 'orange' | 'red' }[];
  /** Words for values. */
  readonly words?: Readonly<Record<string, string>>;
  readonly stacked?: boolean;
}

export interface Query {
  readonly expr: string;
  /** With labels in double braces. */
  readonly legend: string;
}

export interface Row {
  readonly title: string;
  readonly panels: readonly Panel[];
  /** Folded until somebody opens it: not everybody has what it shows. */
  readonly folded?: boolean;
}

const GATEWAYS = 'namespace=~"$namespace",job=~"$job",pod=~"$pod"';
/** A metric of the chosen gateways. */
const of = (metric: string, labels = ''): string => `${metric}{${GATEWAYS}${labels === '' ? '' : `,${labels}`}}`;
/** A metric of the chosen routes, too. */
const on = (metric: string, labels = ''): string => of(metric, `route=~"$route"${labels === '' ? '' : `,${labels}`}`);
const rate = (selected: string): string => `rate(${selected}[$__rate_interval])`;
const within = (selected: string): string => `increase(${selected}[$__range])`;
const sum = (expr: string, by = ''): string => (by === '' ? `sum(${expr})` : `sum by (${by}) (${expr})`);
const quantile = (q: number, selected: string, by = ''): string =>
  `histogram_quantile(${q}, sum by (${by === '' ? 'le' : `${by}, le`}) (${rate(selected)}))`;
const quantiles = (selected: string): Query[] =>
  [0.5, 0.95, 0.99].map((q) => ({ expr: quantile(q, selected), legend: `p${q * 100}` }));
const line = (expr: string, legend: string): Query => ({ expr, legend });

const DELIVERIES = 'hookonce_deliveries_total';
const FAILED = 'outcome=~"unavailable|overloaded|unreachable|uncertain"';

const answers: Row = {
  title: 'Are events handled once?',
  panels: [
    {
      kind: 'stat',
      title: 'Duplicates stopped',
      unit: 'short',
      width: 4,
      description:
        'Copies of events that had been handled, answered by the gateway and not forwarded, in the time shown.',
      queries: [line(sum(within(on(DELIVERIES, 'outcome="duplicate"'))), 'duplicates')],
    },
    {
      kind: 'stat',
      title: 'Forwarded again',
      unit: 'short',
      width: 4,
      description: 'Attempts above 1: after a failure, or after silence; the application is told by Hookonce-Attempt.',
      queries: [line(sum(within(on('hookonce_attempts_repeated_total'))), 'attempts above 1')],
    },
    {
      kind: 'stat',
      title: 'Deliveries with an answer',
      unit: 'percentunit',
      width: 4,
      description:
        'Share of the deliveries that the application answered or that needed no answer of it: not unavailable, overloaded, unreachable or uncertain.',
      queries: [line(`1 - ${sum(within(on(DELIVERIES, FAILED)))} / ${sum(within(on(DELIVERIES)))}`, 'answered')],
      steps: [
        { from: 0, color: 'red' },
        { from: 0.95, color: 'orange' },
        { from: 0.99, color: 'green' },
      ],
    },
    {
      kind: 'stat',
      title: 'Dead letters',
      unit: 'short',
      width: 4,
      description:
        'Events in the queue that have failed for good and that no sender will repeat; 0 without async mode.',
      queries: [line(`max(${of('hookonce_queue_depth', 'queue="async",state="dead"')}) or vector(0)`, 'dead')],
      steps: [
        { from: 0, color: 'green' },
        { from: 1, color: 'red' },
      ],
    },
    {
      kind: 'stat',
      title: 'Quorum',
      unit: 'short',
      width: 4,
      description:
        'Whether a majority of the voters counts on every gateway. Without one deliveries are answered 503, or as onUnavailable says.',
      queries: [line(`min(${of('hookonce_quorum_available')})`, 'quorum')],
      words: { 0: 'lost', 1: 'whole' },
      steps: [
        { from: 0, color: 'red' },
        { from: 1, color: 'green' },
      ],
    },
    {
      kind: 'stat',
      title: 'Voters that do not count',
      unit: 'short',
      width: 4,
      description: 'On the gateway that sees the fewest. One of three may be missing.',
      queries: [line(`max(${sum(of('hookonce_voter_state', 'state=~"down|held"'), 'pod')})`, 'voters')],
      steps: [
        { from: 0, color: 'green' },
        { from: 1, color: 'orange' },
        { from: 2, color: 'red' },
      ],
    },
  ],
};

const traffic: Row = {
  title: 'Traffic',
  panels: [
    {
      kind: 'lines',
      title: 'Deliveries by outcome',
      unit: 'reqps',
      stacked: true,
      description: 'What became of the deliveries on the chosen routes.',
      queries: [line(sum(rate(on(DELIVERIES)), 'outcome'), '{{outcome}}')],
    },
    {
      kind: 'lines',
      title: 'Deliveries by route',
      unit: 'reqps',
      description: 'How many deliveries each route gets.',
      queries: [line(sum(rate(on(DELIVERIES)), 'route'), '{{route}}')],
    },
    {
      kind: 'lines',
      title: 'In flight',
      unit: 'short',
      description:
        'Deliveries without an answer yet, copies that wait for the first, and those that wait for a place at the application.',
      queries: [
        line(sum(on('hookonce_in_flight')), 'in flight'),
        line(sum(on('hookonce_waiting')), 'waiting for a copy'),
        line(sum(of('hookonce_queue_depth', 'queue="upstream"')), 'waiting for a place'),
      ],
    },
    {
      kind: 'lines',
      title: 'Time to the answer',
      unit: 's',
      description: 'From the request to its answer, the application and all waits included.',
      queries: quantiles(on('hookonce_delivery_duration_seconds_bucket')),
    },
    {
      kind: 'lines',
      title: 'Of that, not the application',
      unit: 's',
      description: 'What the gateway adds: the signature, the claim, and waits for copies or for a place.',
      queries: quantiles(on('hookonce_overhead_seconds_bucket')),
    },
    {
      kind: 'lines',
      title: 'The application, by class of status',
      unit: 'reqps',
      stacked: true,
      description: 'How the application answers what is forwarded.',
      queries: [line(sum(rate(on('hookonce_upstream_duration_seconds_count')), 'code_class'), '{{code_class}}')],
    },
    {
      kind: 'lines',
      title: 'No answer of the application',
      unit: 'reqps',
      description: 'Deliveries that the application was not asked about, or did not answer in full, by reason.',
      queries: [line(sum(rate(on('hookonce_upstream_failures_total')), 'reason'), '{{reason}}')],
    },
    {
      kind: 'lines',
      title: 'Rejected, by reason',
      unit: 'reqps',
      description: 'Deliveries that the gateway refused before it looked anything up: signature, name, size, coding.',
      queries: [line(sum(rate(on('hookonce_rejections_total')), 'reason'), '{{reason}}')],
    },
    {
      kind: 'lines',
      title: 'Passed through',
      unit: 'reqps',
      description: 'Requests on no route, which go to the application untouched, by what became of them.',
      queries: [line(sum(rate(of(DELIVERIES, 'route="unmatched"')), 'outcome'), '{{outcome}}')],
    },
  ],
};

const deduplication: Row = {
  title: 'Deduplication',
  panels: [
    {
      kind: 'lines',
      title: 'Share of duplicates',
      unit: 'percentunit',
      description: 'How many of the deliveries on each route are copies of what was handled.',
      queries: [
        line(
          `${sum(rate(on(DELIVERIES, 'outcome="duplicate"')), 'route')} / ${sum(rate(on(DELIVERIES, 'route!="unmatched"')), 'route')}`,
          '{{route}}',
        ),
      ],
    },
    {
      kind: 'lines',
      title: 'Claims not won and locks lost',
      unit: 'ops',
      description:
        'held: another attempt has the event. split, no_quorum: the voters. expired, lost: too slow; lost may mean a second attempt beside the first.',
      queries: [line(sum(rate(of('hookonce_lock_failures_total')), 'reason'), '{{reason}}')],
    },
    {
      kind: 'lines',
      title: 'Forwarded again',
      unit: 'reqps',
      description: 'Attempts above 1, by route.',
      queries: [line(sum(rate(on('hookonce_attempts_repeated_total')), 'route'), '{{route}}')],
    },
    {
      kind: 'lines',
      title: 'Without a claim',
      unit: 'reqps',
      description:
        'Deliveries that nothing keeps from being forwarded twice: no quorum (onUnavailable: forward), or no name (identity.missing: forward).',
      queries: [line(sum(rate(on('hookonce_unclaimed_total')), 'reason'), '{{reason}}')],
    },
    {
      kind: 'lines',
      title: 'Odd copies',
      unit: 'reqps',
      description: 'Known events with another body, known content under another id, and deliveries without a name.',
      queries: [
        line(sum(rate(on('hookonce_other_bodies_total'))), 'other body'),
        line(sum(rate(on('hookonce_replays_blocked_total'))), 'other id'),
        line(sum(rate(on('hookonce_identity_missing_total'))), 'no name'),
      ],
    },
    {
      kind: 'lines',
      title: 'Out of order',
      unit: 'reqps',
      description:
        'On routes with ordering: events older than others of their resource (dropped, marked), or perhaps so (maybe, unread).',
      queries: [line(sum(rate(on('hookonce_out_of_order_total')), 'verdict'), '{{verdict}}')],
    },
    {
      kind: 'lines',
      title: 'Elements of batches',
      unit: 'ops',
      description:
        'On routes with elements: events claimed one by one, those left out as handled, and deliveries taken as a whole all the same.',
      queries: [
        line(sum(rate(on('hookonce_elements_total')), 'result'), '{{result}}'),
        line(sum(rate(on('hookonce_undivided_total')), 'reason'), 'whole: {{reason}}'),
      ],
    },
    {
      kind: 'lines',
      title: 'Secrets that signed',
      unit: 'reqps',
      description:
        'By which of its secrets each route was signed: an old one may go when nothing comes with it any more.',
      queries: [line(sum(rate(on('hookonce_secret_used_total')), 'route, secret'), '{{route}} {{secret}}')],
    },
    {
      kind: 'lines',
      title: 'Would have been stopped',
      unit: 'reqps',
      description: 'On routes with observe: true: what was forwarded and would not have been.',
      queries: [line(sum(rate(on('hookonce_observed_total')), 'outcome'), '{{outcome}}')],
    },
  ],
};

const voters: Row = {
  title: 'Voters',
  panels: [
    {
      kind: 'states',
      title: 'State of each voter',
      unit: 'short',
      width: 12,
      description:
        'On the gateway that sees it worst. On hold: it answers, and does not count yet because it may have forgotten something.',
      queries: [
        line(
          `max by (node) (2 * ${of('hookonce_voter_state', 'state="down"')} or ${of('hookonce_voter_state', 'state="held"')})`,
          '{{node}}',
        ),
      ],
      words: { 0: 'counts', 1: 'on hold', 2: 'down' },
      steps: [
        { from: 0, color: 'green' },
        { from: 1, color: 'orange' },
        { from: 2, color: 'red' },
      ],
    },
    {
      kind: 'lines',
      title: 'Errors of voters',
      unit: 'ops',
      width: 12,
      description: 'Requests to a voter without an answer that can be used, by class.',
      queries: [line(sum(rate(of('hookonce_voter_errors_total')), 'node, class'), '{{node}} {{class}}')],
    },
    {
      kind: 'lines',
      title: 'Claims, p99 by result',
      unit: 's',
      description: 'How long a claim on the quorum takes; at most claims.budget.',
      queries: [line(quantile(0.99, of('hookonce_claim_duration_seconds_bucket'), 'result'), '{{result}}')],
    },
    {
      kind: 'lines',
      title: 'Voters, p99',
      unit: 's',
      description: 'How long one batch takes on each voter. A slow one is waited for only when its vote is needed.',
      queries: [line(quantile(0.99, of('hookonce_voter_command_seconds_bucket'), 'node'), '{{node}}')],
    },
    {
      kind: 'lines',
      title: 'Beats of the watchdog',
      unit: 'ops',
      description: 'Renewals of locks while the application works, by result.',
      queries: [line(sum(rate(of('hookonce_lock_extensions_total')), 'result'), '{{result}}')],
    },
    {
      kind: 'lines',
      title: 'Completions on their way',
      unit: 'short',
      description: 'Events that the application has handled and that a majority of the voters has not on record yet.',
      queries: [line(sum(of('hookonce_completions_pending')), 'pending')],
    },
    {
      kind: 'lines',
      title: 'Memory lost',
      unit: 'short',
      description:
        'Voters that count again although no majority knew what they had forgotten, since the gateways started.',
      queries: [line(sum(of('hookonce_memory_lost_total'), 'node'), '{{node}}')],
    },
    {
      kind: 'lines',
      title: 'Keys dropped by voters',
      unit: 'short',
      description:
        'Since each Redis started. With maxmemory-policy noeviction it stays 0; anything else forgets events.',
      queries: [line(`max by (node) (${of('hookonce_voter_evicted_keys')})`, '{{node}}')],
    },
    {
      kind: 'lines',
      title: 'Gateways with other voters',
      unit: 'ops',
      description:
        'Greetings of voters that another gateway of the service uses with other redis.nodes: two quorums that may not meet.',
      queries: [line(sum(rate(of('hookonce_membership_conflicts_total')), 'node'), '{{node}}')],
    },
    {
      kind: 'lines',
      title: 'What claims stand on',
      unit: 'short',
      description: 'Gateways on each step of the ladder: all voters, voters missing, the ledger alone, nothing.',
      queries: [line(sum(of('hookonce_degradation'), 'state'), '{{state}}')],
    },
  ],
};

const queue: Row = {
  title: 'Queue (async mode)',
  folded: true,
  panels: [
    {
      kind: 'lines',
      title: 'Events in the queue',
      unit: 'short',
      description: 'By state. Every gateway sees the whole queue.',
      queries: [line(`max by (state) (${of('hookonce_queue_depth', 'queue="async"')})`, '{{state}}')],
    },
    {
      kind: 'lines',
      title: 'Age of the oldest',
      unit: 's',
      description: 'Of the events that wait, since they were accepted.',
      queries: [line(`max(${of('hookonce_queue_oldest_seconds')})`, 'oldest')],
    },
    {
      kind: 'lines',
      title: 'Attempts by result',
      unit: 'ops',
      description: 'What became of the tries: failed ones come again, dead ones do not.',
      queries: [line(sum(rate(on('hookonce_queue_attempts_total')), 'result'), '{{result}}')],
    },
    {
      kind: 'lines',
      title: 'Put in the queue',
      unit: 'ops',
      description: 'Deliveries that were to be accepted. Failed and unknown ones were answered 503.',
      queries: [line(sum(rate(on('hookonce_enqueues_total')), 'result'), '{{result}}')],
    },
    {
      kind: 'lines',
      title: 'Jobs that stalled',
      unit: 'ops',
      description: 'Their worker fell silent, and another took them.',
      queries: [line(sum(rate(of('hookonce_queue_stalled_total'))), 'stalled')],
    },
    {
      kind: 'stat',
      title: 'Queue connected, and durable',
      unit: 'short',
      description: 'On every gateway. Not durable: a power cut can lose what was answered 202.',
      queries: [
        line(`min(${of('hookonce_queue_up')})`, 'connected'),
        line(`min(${of('hookonce_queue_durable')})`, 'durable'),
      ],
      words: { 0: 'no', 1: 'yes' },
      steps: [
        { from: 0, color: 'red' },
        { from: 1, color: 'green' },
      ],
    },
  ],
};

const ledger: Row = {
  title: 'Ledger',
  folded: true,
  panels: [
    {
      kind: 'lines',
      title: 'Verdicts',
      unit: 'ops',
      description:
        'What the ledger had to say about claims; done and held are events that the voters would have let through.',
      queries: [line(sum(rate(of('hookonce_ledger_verdicts_total')), 'verdict'), '{{verdict}}')],
    },
    {
      kind: 'lines',
      title: 'Statements, p99',
      unit: 's',
      description: 'How long one statement takes, by what it is for.',
      queries: [line(quantile(0.99, of('hookonce_ledger_command_seconds_bucket'), 'operation'), '{{operation}}')],
    },
    {
      kind: 'stat',
      title: 'Ledger answers',
      unit: 'short',
      description: 'On every gateway.',
      queries: [line(`min(${of('hookonce_ledger_up')})`, 'up')],
      words: { 0: 'no', 1: 'yes' },
      steps: [
        { from: 0, color: 'red' },
        { from: 1, color: 'green' },
      ],
    },
    {
      kind: 'lines',
      title: 'Rows to be caught up',
      unit: 'short',
      description:
        'What the voters decided while the ledger was away, and what was given up since the gateways started.',
      queries: [
        line(sum(of('hookonce_ledger_behind')), 'waiting'),
        line(sum(of('hookonce_ledger_dropped_total')), 'given up'),
      ],
    },
    {
      kind: 'lines',
      title: 'Writes that failed',
      unit: 'ops',
      description: 'Writes that were due and could not be made, by what they were for.',
      queries: [line(sum(rate(of('hookonce_ledger_write_failures_total')), 'operation'), '{{operation}}')],
    },
  ],
};

const runtime: Row = {
  title: 'Runtime',
  panels: [
    {
      kind: 'lines',
      title: 'CPU',
      unit: 'short',
      description: 'Cores in use by each gateway.',
      queries: [line(rate(of('process_cpu_seconds_total')), '{{pod}}')],
    },
    {
      kind: 'lines',
      title: 'Memory',
      unit: 'bytes',
      description: 'Resident memory of each gateway; of that, bodies of deliveries and answers.',
      queries: [
        line(of('process_resident_memory_bytes'), '{{pod}}'),
        line(of('hookonce_buffered_bytes'), '{{pod}} bodies'),
      ],
    },
    {
      kind: 'lines',
      title: 'Event loop, p99 of its lag',
      unit: 's',
      description: 'How late the process is: CPU that is missing or throttled.',
      queries: [line(of('nodejs_eventloop_lag_p99_seconds'), '{{pod}}')],
    },
    {
      kind: 'stat',
      title: 'Configuration',
      unit: 'short',
      description:
        'Whether the file as it lies there was taken over by every gateway, and whether something in it waits for a restart.',
      queries: [
        line(`min(${of('hookonce_config_last_reload_successful')})`, 'taken over'),
        line(`1 - max(${of('hookonce_config_restart_needed')})`, 'nothing waits'),
      ],
      words: { 0: 'no', 1: 'yes' },
      steps: [
        { from: 0, color: 'red' },
        { from: 1, color: 'green' },
      ],
    },
    {
      kind: 'lines',
      title: 'Gateways by version',
      unit: 'short',
      description: 'How many run, of which version.',
      queries: [line(`count by (version) (${of('hookonce_build_info')})`, '{{version}}')],
    },
    {
      kind: 'lines',
      title: 'Spans',
      unit: 'ops',
      description: 'Spans that the collector of traces has taken, or has not.',
      queries: [line(sum(rate(of('hookonce_trace_spans_total')), 'result'), '{{result}}')],
    },
  ],
};

export const ROWS: readonly Row[] = [answers, traffic, deduplication, voters, queue, ledger, runtime];
