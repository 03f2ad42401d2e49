/** What `hookonce check` says about a configuration that is right. */
import type { Config } from './config.ts';
import { formatDuration, formatSize } from './units.ts';

export function summary(config: Config, warnings: readonly string[]): string {
  const nodes = config.redis.nodes.map((node) => node.name).join(', ');
  return [
    'ok',
    `service ${config.service}, claims on ${nodes === '' ? 'the embedded voter' : nodes}`,
    `application ${config.upstream.url}, answers within ${formatDuration(config.upstream.timeoutMs)}`,
    `bodies up to ${formatSize(config.limits.bodyBytes)}, ${formatSize(config.limits.memoryBytes)} in all`,
    ...(config.queue
      ? [`queue ${config.queue.target.kind} ${config.queue.target.name}, ${config.queue.attempts} attempts`]
      : []),
    ...(config.ledger
      ? [`ledger ${config.ledger.name}, database ${config.ledger.database}; without it: ${config.ledger.onDown}`]
      : []),
    ...config.routes.map(
      (route) =>
        `route ${route.name}: ${route.path} from ${route.sender}, secrets: ${route.secrets.length}, remembered for ${formatDuration(route.retentionMs)}`,
    ),
    ...warnings.map((warning) => `warning: ${warning}`),
  ].join('\n');
}
