import { LRUCache } from "lru-cache";
import { hasEnded } from "../../hasEnded.ts";
import { limitInMemory } from "./limitInMemory.ts";
import { MemoryCounts } from "./memoryCounts.ts";

/** How long a namespace counts as full without another look at the database, in milliseconds. */
const FULL = 5_000;
/** Maximum number of namespaces remembered as full. */
const REMEMBERED = 10_000;

/**
 * One process's memory of recent enrolments, so that strangers who enrol devices cost little: which namespaces are
 * full, and how many devices enrolled from an address.
 */
export class Enrolments {
  /** When a namespace no longer counts as full, in milliseconds since 1970. */
  readonly #full = new LRUCache<string, number>({ max: REMEMBERED });
  readonly #fromAddress = new MemoryCounts();

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
   * Counts a device that enrols for the first time.
   * @param most maximum per address and minute; 0: any number
   * @throws RateLimitedError too many devices came from the address
   */
  count(network: string, most: number, now: Date): void {
    limitInMemory(this.#fromAddress, network, most, now.getTime());
  }
}
