import { LRUCache } from "lru-cache";
import { hasEnded } from "../../http/hasEnded.ts";
import { limitInMemory, MemoryCounts } from "../../http/memoryCounts.ts";

/** How long a namespace is taken for full without another look, in milliseconds. */
const FULL = 5_000;
/** Namespaces of which it is remembered. */
const REMEMBERED = 10_000;

/**
 * What one process remembers of devices that nobody knew, so that strangers who enrol some cost little: which namespaces
 * take no more, and how many came from an address.
 */
export class Enrolments {
  /** When a namespace is to be looked at again, in milliseconds since 1970. */
  readonly #full = new LRUCache<string, number>({ max: REMEMBERED });
  readonly #fromAddress = new MemoryCounts();

  /** Whether as many devices waited in the namespace as may, a moment ago. */
  isFull(tenantId: string, now: Date): boolean {
    const end = this.#full.get(tenantId);
    return end !== undefined && !hasEnded(end, now.getTime(), FULL);
  }

  /** Remembers that as many wait as may. */
  noteFull(tenantId: string, now: Date): void {
    this.#full.set(tenantId, now.getTime() + FULL);
  }

  /**
   * To be called when a device of the namespace is accepted, rejected or deleted. Whoever looks before that is committed,
   * or on another instance, may still take it for full, for no longer than the time.
   */
  noteRoom(tenantId: string): void {
    this.#full.delete(tenantId);
  }

  /**
   * Counts a device that is new to the service.
   * @param most of an address in a minute; 0: any number
   * @throws RateLimitedError too many came from the address
   */
  count(network: string, most: number, now: Date): void {
    limitInMemory(this.#fromAddress, network, most, now.getTime());
  }
}
