import { LRUCache } from "lru-cache";
import { BusyError } from "../../errors.ts";
import { hasEnded } from "../../hasEnded.ts";
import { limitInMemory } from "./limitInMemory.ts";
import { MemoryCounts } from "./memoryCounts.ts";

/** How long a namespace counts as full without another look at the database, in milliseconds. */
const FULL = 5_000;
/** Maximum number of namespaces remembered as full. */
const REMEMBERED = 10_000;
/** Enrollments that may wait in one namespace; the last of them waits for all the others. */
const WAITING = 500;

interface Queue {
  /** The enrollment at the end of the queue. */
  last: Promise<unknown>;
  length: number;
}

/**
 * One process's memory of recent enrollments, so that enrollments of clients without a credential cost little: which
 * namespaces are full, how many devices enrolled from an address, and which enrollments wait.
 */
export class Enrollments {
  /** When a namespace no longer counts as full, in milliseconds since 1970. */
  readonly #full = new LRUCache<string, number>({ max: REMEMBERED });
  readonly #fromAddress = new MemoryCounts();
  /** By namespace. */
  readonly #queues = new Map<string, Queue>();

  /** Whether the namespace had as many pending devices as it may have, a moment ago. */
  isFull(tenantId: string, now: Date): boolean {
    const end = this.#full.get(tenantId);
    return end !== undefined && !hasEnded(end, now.getTime(), FULL);
  }

  /** Remembers that the namespace has as many pending devices as it may have. */
  noteFull(tenantId: string, now: Date): void {
    this.#full.set(tenantId, now.getTime() + FULL);
  }

  /**
   * To be called when a device of the namespace is accepted, rejected or deleted. Before the commit, or on another
   * instance, the namespace may still count as full for some seconds.
   */
  noteFreedQuota(tenantId: string): void {
    this.#full.delete(tenantId);
  }

  /**
   * Counts a device that enrolls for the first time.
   * @param most maximum per address and minute; 0: any number
   * @throws RateLimitedError too many devices came from the address
   */
  count(network: string, most: number, now: Date): void {
    limitInMemory(this.#fromAddress, network, most, now.getTime());
  }

  /**
   * Runs an enrollment once all earlier ones of the namespace have ended. Each changes the count of pending devices: side
   * by side most of them would only retry. In shared transactions, clients without a credential would delay other writes.
   * @throws BusyError too many wait already
   */
  async inTurn<T>(tenantId: string, enroll: () => Promise<T>): Promise<T> {
    const queue = this.#queues.get(tenantId) ?? { last: Promise.resolve(), length: 0 };
    if (queue.length > WAITING) {
      throw new BusyError("too many requests wait for the same namespace, try again", { "Retry-After": "2" });
    }
    // The caller of the previous one gets its error.
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
