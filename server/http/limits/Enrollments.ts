import { LRUCache } from "lru-cache";
import { BusyError } from "../../errors.ts";
import { hasEnded } from "../../hasEnded.ts";
import { limitInMemory } from "./limitInMemory.ts";
import { MemoryCounts } from "./memoryCounts.ts";

/** Time, in milliseconds, for which a namespace counts as full without another database read. */
const FULL = 5_000;
/** Maximum number of namespaces in the cache of full namespaces. */
const REMEMBERED = 10_000;
/** Maximum number of enrollments that wait in one namespace. The last enrollment waits for all earlier enrollments. */
const WAITING = 500;

interface Queue {
  /** The enrollment at the end of the queue. */
  last: Promise<unknown>;
  length: number;
}

/**
 * Tracks the recent enrollments of one process, so that enrollments of clients without a credential cost little. Stores
 * which namespaces are full, the number of devices that enrolled from each address, and the waiting enrollments.
 */
export class Enrollments {
  /** The time until which each namespace counts as full, in milliseconds since 1970. */
  readonly #full = new LRUCache<string, number>({ max: REMEMBERED });
  readonly #fromAddress = new MemoryCounts();
  /** Waiting enrollments, by namespace. */
  readonly #queues = new Map<string, Queue>();

  /** Returns true if the namespace had the maximum number of pending devices a moment ago. */
  isFull(tenantId: string, now: Date): boolean {
    const end = this.#full.get(tenantId);
    return end !== undefined && !hasEnded(end, now.getTime(), FULL);
  }

  /** Records that the namespace has the maximum number of pending devices. */
  noteFull(tenantId: string, now: Date): void {
    this.#full.set(tenantId, now.getTime() + FULL);
  }

  /**
   * Records that a device of the namespace was accepted, rejected or deleted. Before the commit, or on another
   * instance, the namespace may still count as full for some seconds.
   */
  noteFreedQuota(tenantId: string): void {
    this.#full.delete(tenantId);
  }

  /**
   * Counts a device that enrolls for the first time.
   * @param most maximum per address and minute; 0: no limit
   * @throws RateLimitedError too many devices enrolled from the address
   */
  count(network: string, most: number, now: Date): void {
    limitInMemory(this.#fromAddress, network, most, now.getTime());
  }

  /**
   * Runs an enrollment after all earlier enrollments of the namespace have ended. Enrollments do not run concurrently:
   * each enrollment changes the count of pending devices, so most concurrent enrollments would conflict and retry.
   * Enrollments do not share transactions: clients without a credential would delay other writes.
   * @throws BusyError too many enrollments wait already
   */
  async inTurn<T>(tenantId: string, enroll: () => Promise<T>): Promise<T> {
    const queue = this.#queues.get(tenantId) ?? { last: Promise.resolve(), length: 0 };
    if (queue.length > WAITING) {
      throw new BusyError("too many enrollments are waiting in the namespace; try again", {
        "Retry-After": "2",
      });
    }
    // The previous enrollment's error is ignored here, because its own caller receives the error.
    const run = queue.length === 0 ? enroll() : queue.last.then(enroll, enroll);
    queue.last = run;
    queue.length += 1;
    this.#queues.set(tenantId, queue);
    try {
      return await run;
    } finally {
      queue.length -= 1;
      if (queue.length === 0) this.#queues.delete(tenantId);
    }
  }
}
