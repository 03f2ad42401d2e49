/** Processes of the bench: each takes tasks from the one that started it, one after the other, and ends with it. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { environment } from '../setup/tool.ts';

export interface Worker<Task, Answer> extends AsyncDisposable {
  readonly pid: number;
  /** Rejects with what the worker threw. */
  run(task: Task): Promise<Answer>;
}

type Reply = { readonly answer: unknown } | { readonly error: string };

/** `file`: a module that calls `serve`. */
export function startWorker<Task, Answer>(file: URL): Worker<Task, Answer> {
  const child = fork(fileURLToPath(file), { env: environment(), execArgv: [] });
  const exited = once(child, 'exit');
  return {
    pid: child.pid!,
    async run(task) {
      child.send(task as object);
      const ended = exited.then(([code]): [Reply] => [{ error: `${file.pathname} ended with ${code}` }]);
      const [reply] = (await Promise.race([once(child, 'message'), ended])) as [Reply];
      if ('error' in reply) throw new Error(reply.error);
      return reply.answer as Answer;
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

/** The worker's side. */
export function serve(run: (task: never) => Promise<object>): void {
  process.on('message', (task) => {
    run(task as never).then(
      (answer) => process.send!({ answer } satisfies Reply),
      (error: unknown) => process.send!({ error: String((error as Error).stack) } satisfies Reply),
    );
  });
  process.once('disconnect', () => process.exit());
}
