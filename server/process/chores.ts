import type { FastifyBaseLogger } from "fastify";

/** Work that a process repeats while it runs. */
export interface Chore {
  readonly name: string;
  /** In milliseconds. */
  readonly every: number;
  run(): Promise<void>;
}

/**
 * Repeats chores, each again only when its last run has ended. One that fails is logged and tried again in its turn.
 * @returns ends them, and waits for those that run
 */
export function startChores(chores: readonly Chore[], log: FastifyBaseLogger): () => Promise<void> {
  const running = new Set<Promise<void>>();
  const timers = chores.map(({ name, every, run }) => {
    let busy = false;
    return setInterval(() => {
      if (busy) return;
      busy = true;
      const work = run()
        .catch((error: unknown) => log.error({ err: error, chore: name }, "a chore failed"))
        .finally(() => {
          busy = false;
          running.delete(work);
        });
      running.add(work);
    }, every).unref();
  });
  return async () => {
    for (const timer of timers) clearInterval(timer);
    await Promise.all(running);
  };
}
