/** The application of these tests: plays a script per event, and answers 200 to everything else. */
import {
  startApplication,
  type Answer,
  type Application,
  type Handler,
  type Visit,
} from '../../src/demo/application.ts';
import { freePort } from '../../src/demo/free-port.ts';
import { header } from '../../src/core/delivery.ts';

export interface ScriptedApplication extends Application {
  /** What to do with the next visits of an event, one step each; after the last, 200 again. */
  script(event: string, ...steps: readonly Handler[]): void;
  /** What to do with visits that have no script. */
  otherwise(step: Handler): void;
  /** The visits of one event. */
  of(event: string): Visit[];
  /** Drops the next connections as soon as a request's head has come, before its body is read. */
  closeBeforeReading(requests: number): void;
}

export async function scriptedApplication(): Promise<ScriptedApplication> {
  const scripts = new Map<string, Handler[]>();
  let fallback: Handler = answer(200);
  let toClose = 0;
  const port = await freePort();
  const application = await startApplication(
    (visit, socket) => (scripts.get(eventOf(visit))?.shift() ?? fallback)(visit, socket),
    {
      port,
      early: (request) => {
        if (toClose === 0) return false;
        toClose -= 1;
        request.socket.destroy();
        return true;
      },
    },
  );
  return {
    ...application,
    script: (event, ...steps) => void scripts.set(event, [...steps]),
    otherwise: (step) => void (fallback = step),
    of: (event) => application.visits.filter((visit) => eventOf(visit) === event),
    closeBeforeReading: (requests) => void (toClose = requests),
  };
}

/** The event that a visit is about: GitHub's delivery id, or the `id` of a JSON body. */
function eventOf(visit: Visit): string {
  const named = header(visit.headers, 'x-github-delivery');
  if (named !== undefined) return named;
  try {
    return String((JSON.parse(new TextDecoder().decode(visit.body)) as { id?: unknown }).id);
  } catch {
    return '';
  }
}

export function answer(status: number, more: Omit<Answer, 'status'> = {}): Handler {
  return () => ({ status, body: `answered ${status}\n`, ...more });
}

/** Reads the request and resets the connection. */
export const reset: Handler = (_visit, socket) => {
  socket.resetAndDestroy();
  return undefined;
};

export interface Held {
  readonly step: Handler;
  /** Resolves when the application has read the request and begun to work. */
  readonly arrived: Promise<Visit>;
  /** Lets the application answer. */
  finish(with_?: Answer): void;
}

/** A step that works until the test lets it answer. */
export function held(): Held {
  const arrived = Promise.withResolvers<Visit>();
  const finished = Promise.withResolvers<Answer>();
  return {
    step: async (visit) => {
      arrived.resolve(visit);
      return await finished.promise;
    },
    arrived: arrived.promise,
    finish: (with_ = { status: 200 }) => finished.resolve(with_),
  };
}
