import { BusyError } from "../../errors.ts";

/** Jobs that may wait under one key; the last of them waits for all the others. */
const WAITING = 500;

interface Queue {
  /** The job at the end of the queue. */
  last: Promise<unknown>;
  length: number;
}

/** Queues by key. */
const queues = new Map<string, Queue>();

/**
 * Runs a job once all earlier jobs under the same key in this process have ended. Transactions that would conflict on
 * the same rows then need no retry, unless another instance interferes.
 * @throws BusyError too many jobs wait already
 */
export async function runSerially<T>(key: string, job: () => Promise<T>): Promise<T> {
  const queue = queues.get(key) ?? { last: Promise.resolve(), length: 0 };
  if (queue.length > WAITING) {
    throw new BusyError("too many requests wait for the same namespace, try again", { "Retry-After": "2" });
  }
  // The caller of the previous job gets that job's error.
  const run = queue.length === 0 ? job() : queue.last.then(job, job);
  queue.last = run;
  queue.length += 1;
  queues.set(key, queue);
  try {
    return await run;
  } finally {
    queue.length -= 1;
    if (queue.length === 0) queues.delete(key);
  }
}
