import type { Step } from "../../model.ts";
import type { RunLog } from "../../runLog.ts";
import type { Snapshot } from "../../state/snapshot.ts";
import type { ProviderProcess } from "../program/providerProcess.ts";
import type { TakenEntries } from "./participants.ts";

type StopReason = "failed" | "cancelled" | "unsupported";

/**
 * A switch that stops a run. A stopped run starts no new work, but finishes the work in flight. If there are several
 * reasons to stop, the first reason is reported.
 */
export class StopSwitch {
  #reason: StopReason | undefined;
  readonly #stopped = Promise.withResolvers<void>();
  readonly #inFlight = new Set<Promise<unknown>>();

  get reason(): StopReason | undefined {
    return this.#reason;
  }

  stop(reason: StopReason): void {
    this.#reason ??= reason;
    this.#stopped.resolve();
  }

  get stopped(): Promise<void> {
    return this.#stopped.promise;
  }

  /** Registers work in flight. The run waits for this work before it ends. */
  track<T>(work: Promise<T>): Promise<T> {
    this.#inFlight.add(work);
    const done = () => this.#inFlight.delete(work);
    work.then(done, done);
    return work;
  }

  async settled(): Promise<void> {
    while (this.#inFlight.size > 0) await Promise.allSettled([...this.#inFlight]);
  }
}

/** Runs at most `size` functions at the same time. Further functions wait, and start in the order of the calls. */
export class Limiter {
  readonly #size: number;
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(size: number) {
    this.#size = Math.max(1, size);
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running >= this.#size) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#running += 1;
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#running -= 1;
    }
  }
}

export interface DeletionContext {
  readonly provider: ProviderProcess;
  readonly snapshot: Snapshot;
  readonly log: RunLog;
  readonly stop: StopSwitch;
  readonly limiter: Limiter;
  readonly dryRun: boolean;
  /** URNs of the resources that this run deletes. Each deletion adds the URN of its resource to this set. */
  readonly deleted: Set<string>;
  /**
   * Returns the reason why this run must not delete a resource. Returns undefined if the run may delete the resource.
   */
  readonly refuse: (urn: string) => string | undefined;
}

export interface DeploymentContext extends DeletionContext {
  readonly taken: TakenEntries;
  /**
   * The steps of replaced resources, by URN. The deletion of a resource's old object belongs to the same step as the
   * replacement.
   */
  readonly replaced: Map<string, Step>;
  /**
   * URNs of resources that this run deleted because they depend on a replaced resource. The run creates these resources
   * again.
   */
  readonly recreate: Set<string>;
  /** The reference to the default provider; empty before the program registers its first dynamic resource. */
  providerRef: string;
}
