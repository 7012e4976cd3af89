import { once } from "node:events";
import { setTimeout as wait } from "node:timers/promises";
import type { ProxyFor, Timing } from "@gatehouse-access/sdk";
import { Agent } from "../../agent/Agent.ts";
import { type DeviceKey, deviceKey } from "../../agent/identity.ts";
import { ServicePin } from "../../agent/servicePin.ts";
import { testFolder } from "../support/folder.ts";

/** Length of a released pause, in milliseconds. */
const BRIEF = 100;

/** A timing whose pauses end only when the test ends them. Its random number is always 0. */
export class HeldTiming implements Timing {
  readonly now: () => number;
  readonly random = (): number => 0;
  readonly #begun = new EventTarget();
  readonly #pauses: { readonly ms: number; end(): void }[] = [];
  #isHeld = true;

  /** @param now the time of the clock, in milliseconds since 1970. Default: the system's time */
  constructor(now?: number) {
    this.now = now === undefined ? Date.now : () => now;
  }

  readonly sleep = async (ms: number, signal?: AbortSignal): Promise<void> => {
    signal?.throwIfAborted();
    if (!this.#isHeld) return wait(BRIEF);
    await new Promise<void>((resolve, reject) => {
      signal?.addEventListener("abort", () => reject(signal.reason));
      this.#pauses.push({ ms, end: resolve });
      this.#begun.dispatchEvent(new Event("pause"));
    });
  };

  /** From now on, each pause ends after a short time. */
  release(): void {
    this.#isHeld = false;
  }

  /** Waits until the agent pauses. Returns the length of the pause, in milliseconds, and a function that ends it. */
  async pause(): Promise<{ readonly ms: number; end(): void }> {
    for (;;) {
      const next = this.#pauses.shift();
      if (next !== undefined) return next;
      await once(this.#begun, "pause");
    }
  }
}

/** An agent that runs in the process of the tests, so that a test can control its timing. */
export interface OwnAgent {
  readonly timing: HeldTiming;
  /** Messages in the agent's log. */
  readonly messages: string[];
  /** The facts of each message. */
  readonly facts: Readonly<Record<string, unknown>>[];
  /** Resolves when the agent's log contains a message this number of times. */
  logged(message: string, count?: number): Promise<void>;
  stop(): Promise<void>;
  /** Resolves when the agent has stopped, and rejects if it ends with an error. */
  readonly ended: Promise<void>;
}

/** Options of an agent that runs in the process of the tests. */
interface OwnAgentOptions {
  readonly url: string;
  readonly tenant: string;
  readonly hostname: string;
  readonly mac: string;
  readonly timing?: HeldTiming;
  /** Default: no proxy. */
  readonly proxyFor?: ProxyFor;
  /** Default: a new key. */
  readonly key?: DeviceKey;
}

/** Starts an agent that accepts no login. The caller must stop it. */
export function startOwnAgent({ timing = new HeldTiming(), key, ...options }: OwnAgentOptions): OwnAgent {
  const folder = testFolder();
  const messages: string[] = [];
  const facts: Readonly<Record<string, unknown>>[] = [];
  const logging = new EventTarget();
  const agent = new Agent({
    ...options,
    key: key ?? deviceKey(folder),
    pin: new ServicePin(folder),
    timing,
    version: "v0.1.0",
    logins: [],
    passwordFits: async () => false,
    user: { name: "nobody", home: "/", shell: "/bin/sh" },
    allowForwarding: false,
    sftpServer: undefined,
    log: (_level, message, given = {}) => {
      messages.push(message);
      facts.push({ ...given });
      logging.dispatchEvent(new Event("line"));
    },
  });
  const running = agent.run();
  return {
    ended: running,
    timing,
    messages,
    facts,
    async logged(message, count = 1) {
      while (messages.filter((text) => text === message).length < count) await once(logging, "line");
    },
    async stop() {
      agent.stop();
      // `ended` reports an error of the agent.
      await running.catch(() => {});
    },
  };
}
