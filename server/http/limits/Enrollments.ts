import { LRUCache } from "lru-cache";
import { hasPeriodEnded } from "../../periods.ts";
import { type Enrolling, EnrollmentTurns } from "./EnrollmentTurns.ts";
import { limitInMemory } from "./limitInMemory.ts";
import { MemoryCounts } from "./memoryCounts.ts";

/**
 * Time, in milliseconds, for which a namespace is treated as full without another database read. A namespace is full if
 * it has the maximum number of pending devices.
 */
const FULL = 5_000;
/** Maximum number of namespaces in the cache of full namespaces. */
const REMEMBERED = 10_000;
/**
 * Tracks the recent enrollments of one process, so that enrollments by clients without a credential cost little. Stores
 * the full namespaces, the number of devices that enrolled from each address, and the waiting enrollments.
 */
export class Enrollments {
  /** The time until which each namespace is treated as full, in milliseconds since 1970. */
  readonly #full = new LRUCache<string, number>({ max: REMEMBERED });
  readonly #fromAddress = new MemoryCounts();
  readonly #turns: EnrollmentTurns;

  constructor(turns = new EnrollmentTurns()) {
    this.#turns = turns;
  }

  /** Returns true if the namespace recently had the maximum number of pending devices. */
  isFull(tenantId: string, now: Date): boolean {
    const end = this.#full.get(tenantId);
    return end !== undefined && !hasPeriodEnded(end, now.getTime(), FULL);
  }

  /** Records that the namespace has the maximum number of pending devices. */
  noteFull(tenantId: string, now: Date): void {
    this.#full.set(tenantId, now.getTime() + FULL);
  }

  /**
   * Records that a device of the namespace was accepted, rejected or deleted. Other instances may still treat the
   * namespace as full for a few seconds. This instance may do so too if this method is called before the commit.
   */
  noteFreedQuota(tenantId: string): void {
    this.#full.delete(tenantId);
  }

  /**
   * Counts a device that enrolls for the first time.
   * @param most maximum number of devices per address and minute; 0 means no limit
   * @throws RateLimitedError too many devices enrolled from the address
   */
  count(network: string, most: number, now: Date): void {
    limitInMemory(this.#fromAddress, network, most, now.getTime());
  }

  /**
   * Runs an enrollment in its turn, see {@link EnrollmentTurns}.
   * @throws BusyError too many enrollments are already waiting
   */
  inTurn<T>(sender: Enrolling, enroll: () => Promise<T>): Promise<T> {
    return this.#turns.run(sender, enroll);
  }
}
