import { setTimeout as wait } from "node:timers/promises";
import { BusyError } from "../../errors.ts";

/**
 * Maximum number of enrollments that run at the same time. They share a transaction, because COMMIT takes longer than
 * the enrollments themselves.
 */
const TOGETHER = 16;
/** Maximum number of waiting enrollments for each namespace. */
const WAITING = 1000;
/** Maximum number of waiting enrollments for each namespace and network. */
const WAITING_OF_NETWORK = 500;
/** Delay after a group of enrollments, as a multiple of the time that the group took. */
const PAUSE = 3;
/** Maximum delay after a group of enrollments, in milliseconds. */
const LONGEST_PAUSE = 1000;

/** The sender of an enrollment. */
export interface Enrolling {
  /** Tenant id of the namespace. */
  readonly tenantId: string;
  /** The network of the client address, see `RequestFacts`. */
  readonly network: string;
  /**
   * True for a report from an enrolled device (a known device). Known devices have a separate queue, so new devices
   * cannot use up the places of known devices.
   */
  readonly isKnown: boolean;
}

interface Waiting {
  readonly namespace: string;
  readonly network: string;
  /** Begins the enrollment. The promise resolves when the enrollment has ended, whether or not it succeeded. */
  begin(): Promise<void>;
}

/** Waiting enrollments, grouped by owner. An owner is a namespace or a network. The owners take turns. */
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

  /** Returns the first enrollment of the owner whose turn is next. Returns undefined if no enrollment is waiting. */
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
 * Runs enrollments in groups. Clients need no credential to send enrollments, so enrollments use at most a quarter of
 * the time: after each group, the service waits three times as long as the group took. On SQLite, all other requests
 * wait while a group is written.
 *
 * Waiting networks and waiting namespaces have alternate turns. An enrollment is therefore delayed only a little if few
 * networks send enrollments, or if few namespaces receive enrollments. A flood from one network to many namespaces does
 * not stop the enrollments of other networks. A flood from many networks to one namespace does not stop the enrollments
 * in other namespaces.
 */
export class EnrollmentTurns {
  readonly #pause: (milliseconds: number) => Promise<unknown>;
  readonly #networks = new Owners();
  readonly #namespaces = new Owners();
  #isNetworkNext = true;
  #isRunning = false;

  /** @param pause waits for the given time, in milliseconds */
  constructor(pause: (milliseconds: number) => Promise<unknown> = wait) {
    this.#pause = pause;
  }

  /**
   * Runs an enrollment in its turn.
   * @returns the result of the enrollment; the promise rejects with the error of the enrollment
   * @throws BusyError too many enrollments are already waiting
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
