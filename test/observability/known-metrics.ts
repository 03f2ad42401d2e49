/** Whether an expression asks for metrics that a gateway has, by labels and values that they have. */
import { described } from '../../docs/generate-metrics.ts';

/** What scrapes add. */
const SCRAPED = ['namespace', 'job', 'pod', 'instance'];
/** Labels whose values are names of one's own, or come with time. */
const OPEN = ['route', 'node', 'secret', 'version', 'code_class', 'class'];

const metrics = new Map((await described()).map((metric) => [metric.name, metric.labels]));

/** What is wrong with it; nothing where all is well. */
export function strangers(expr: string): string[] {
  return [...expr.matchAll(/\b((?:hookonce|nodejs|process)_\w+)(?:\{([^}]*)\})?/g)].flatMap(
    ([, name = '', selector = '']) => {
      const labels = metrics.get(name) ?? metrics.get(name.replace(/_(bucket|count|sum)$/, ''));
      if (labels === undefined) return [`there is no metric ${name}`];
      return [...selector.matchAll(/(\w+)(=~|!=|!~|=)"([^"]*)"/g)].flatMap(([, label = '', , wanted = '']) => {
        if (SCRAPED.includes(label)) return [];
        const known = labels.find((one) => one.name === label);
        if (known === undefined) return [`${name} has no label ${label}`];
        if (OPEN.includes(label)) return [];
        return wanted
          .split('|')
          .filter((value) => !known.values.includes(value))
          .map((value) => `${name} has no ${label} ${value}`);
      });
    },
  );
}
