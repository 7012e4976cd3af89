import type { Step } from "../../model.ts";
import type { RunLog } from "../../runLog.ts";
import type { Snapshot } from "../../state/snapshot.ts";
import type { ProviderProcess } from "../program/providerProcess.ts";
import type { TakenEntries } from "./participants.ts";

type StopReason = "failed" | "cancelled" | "unsupported";

/** Pressed once, where a run must not start anything more; what is in flight is finished. */
export class StopSwitch {
  #reason: StopReason | undefined;
  readonly #pressed = Promise.withResolvers<void>();
  readonly #inFlight = new Set<Promise<unknown>>();

  get reason(): StopReason | undefined {
    return this.#reason;
  }

  stop(reason: StopReason): void {
    this.#reason ??= reason;
    this.#pressed.resolve();
  }

  get stopped(): Promise<void> {
    return this.#pressed.promise;
  }

  /** Keeps track of work that must be finished before the run ends. */
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

/** Lets at most `size` pieces of work run at once; others wait in order. */
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
  /** URNs deleted in this run; deleting adds to them. */
  readonly deleted: Set<string>;
  /** Why a resource may not be deleted in this run; undefined where it may. */
  readonly refuse: (urn: string) => string | undefined;
}

export interface DeploymentContext extends DeletionContext {
  readonly taken: TakenEntries;
  /** The steps of replacements, by URN: their old objects go. */
  readonly replaced: Map<string, Step>;
  /** URNs of resources whose object was deleted because it depends on a replaced one: they are made again. */
  readonly recreate: Set<string>;
  /** The reference to the default provider; empty before the first dynamic resource. */
  providerRef: string;
}
