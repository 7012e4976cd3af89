import { setTimeout as wait } from "node:timers/promises";
import { BusyError } from "../../errors.ts";

/**
 * Maximum number of enrollments that run at the same time. They share a transaction: its COMMIT takes longer than the
 * enrollments.
 */
const TOGETHER = 16;
/** Maximum number of enrollments that wait in one namespace. */
const WAITING = 1000;
/** Maximum number of enrollments that wait in one namespace and come from one network. */
const WAITING_OF_NETWORK = 500;
/** Length of the pause after a group of enrollments, as a multiple of the time that the group took. */
const PAUSE = 3;
/** Maximum length of the pause, in milliseconds. */
const LONGEST_PAUSE = 1000;

/** The sender of an enrollment. */
export interface Enrolling {
  /** Tenant id of the namespace. */
  readonly tenantId: string;
  /** The network of the client address; see `RequestFacts`. */
  readonly network: string;
  /** True for a report of an enrolled device. New devices do not use up its places in the queue. */
  readonly isKnown: boolean;
}

interface Waiting {
  readonly namespace: string;
  readonly network: string;
  /** Begins the enrollment. The promise is fulfilled when the enrollment has ended, also if it failed. */
  begin(): Promise<void>;
}

/** Waiting enrollments by an owner. The owners take turns. */
class Owners {
  /** The enrollments of each owner, in the order of their arrival. The owner whose turn is next comes first. */
  readonly #waiting = new Map<string, Set<Waiting>>();

  add(owner: string, enrollment: Waiting): void {
    this.#waiting.set(owner, this.of(owner).add(enrollment));
  }

  remove(owner: string, enrollment: Waiting): void {
    const own = this.of(owner);
    own.delete(enrollment);
    if (own.size === 0) this.#waiting.delete(owner);
  }

  of(owner: string): Set<Waiting> {
    return this.#waiting.get(owner) ?? new Set();
  }

  /** Returns the first enrollment of the owner whose turn it is; undefined if no enrollment waits. */
  next(): Waiting | undefined {
    for (const [owner, own] of this.#waiting) {
      this.#waiting.delete(owner);
      this.#waiting.set(owner, own);
      const [first] = own;
      return first;
    }
    return undefined;
  }
}

/**
 * Runs enrollments in groups. Clients without a credential send enrollments, so the groups take at most a quarter of the
 * time: after each group, no enrollment runs for three times as long. On SQLite, all other requests wait while a group
 * is written.
 *
 * Turns go to the waiting networks and to the waiting namespaces alternately. So an enrollment is delayed little if few
 * networks send enrollments, or if few namespaces receive them: neither a flood from one network to many namespaces, nor
 * a flood from many networks to one namespace stops the enrollments of others.
 */
export class EnrollmentTurns {
  readonly #pause: (milliseconds: number) => Promise<unknown>;
  readonly #networks = new Owners();
  readonly #namespaces = new Owners();
  #isNetworkNext = true;
  #isRunning = false;

  /** @param pause waits for a time in milliseconds */
  constructor(pause: (milliseconds: number) => Promise<unknown> = wait) {
    this.#pause = pause;
  }

  /**
   * Runs an enrollment in its turn.
   * @returns the result of the enrollment; the promise rejects with the error of the enrollment
   * @throws BusyError too many enrollments wait already
   */
  async run<T>({ tenantId, network, isKnown }: Enrolling, enroll: () => Promise<T>): Promise<T> {
    const namespace = `${isKnown ? "known" : "new"} ${tenantId}`;
    const waiting = [...this.#namespaces.of(namespace)];
    const ofNetwork = waiting.filter((other) => other.network === network);
    if (waiting.length >= WAITING || ofNetwork.length >= WAITING_OF_NETWORK) {
      throw new BusyError("too many enrollments are waiting in the namespace; try again", {
        "Retry-After": "2",
      });
    }
    return new Promise((resolve, reject) => {
      const enrollment: Waiting = { namespace, network, begin: () => enroll().then(resolve, reject) };
      this.#networks.add(network, enrollment);
      this.#namespaces.add(namespace, enrollment);
      if (!this.#isRunning) void this.#runAll();
    });
  }

  async #runAll(): Promise<void> {
    this.#isRunning = true;
    for (let group = this.#takeGroup(); group.length > 0; group = this.#takeGroup()) {
      const began = performance.now();
      await Promise.all(group.map((enrollment) => enrollment.begin()));
      await this.#pause(Math.min(PAUSE * (performance.now() - began), LONGEST_PAUSE));
    }
    this.#isRunning = false;
  }

  #takeGroup(): Waiting[] {
    const group: Waiting[] = [];
    while (group.length < TOGETHER) {
      const next = (this.#isNetworkNext ? this.#networks : this.#namespaces).next();
      if (next === undefined) break;
      this.#isNetworkNext = !this.#isNetworkNext;
      this.#networks.remove(next.network, next);
      this.#namespaces.remove(next.namespace, next);
      group.push(next);
    }
    return group;
  }
}
