import { randomInt } from "node:crypto";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Result } from "../../provider/engine/index.ts";
import { openCrypter } from "../../provider/engine/state/crypter.ts";
import { AuthenticationError, apiKeyCredential, createClient } from "../../sdk/index.ts";
import { DAY } from "../../sdk/times.ts";
import { startFleet } from "../support/fleet.ts";
import type { Stack } from "../support/gatehouse.ts";
import { PolicyProgram } from "../support/policyProgram.ts";
import { shared } from "../support/shared.ts";

/** The number of days between two runs of the schedule. */
const INTERVAL = 30;
const YEAR = 12 * INTERVAL;
const CLOCK = new URL("../support/movedClock.ts", import.meta.url).href;
const PASSPHRASE = "correct horse battery staple";
const KEYS = ["standard", "careless"] as const;
type KeyName = (typeof KEYS)[number];

const PROGRAM = `const { ApiKey } = require("@gatehouse-access/provider");
const rotating = { role: "observer", validDays: 90, rotateBefore: 35 };
exports.standard = new ApiKey("standard", rotating).key;
exports.careless = new ApiKey("careless", { ...rotating, overlap: 0 }).key;
`;

/** The requests of a client, and the number of requests that the service rejected with 401. */
interface Counts {
  requests: number;
  rejected: number;
}

// Slow: the schedule runs the command as a process 13 times, because the clock of each process is moved.
describe("scheduled rotations over a year", { tags: ["long"], timeout: 900_000 }, () => {
  const program = new PolicyProgram();
  program.write("index.js", PROGRAM);
  program.write("clock", "0");
  const clock = { NODE_OPTIONS: `--import=${CLOCK}`, MOVED_CLOCK: join(program.folder, "clock") };
  const fleet = shared(() => startFleet([], { env: clock }));
  let stack: Stack;

  beforeAll(() => {
    const env = { ...fleet.env, ...clock, PULUMI_CONFIG_PASSPHRASE: PASSPHRASE };
    stack = program.stack({ env, name: "dev", spawned: true });
  });
  afterAll(() => program.remove());

  /** Returns a function that reads the newest secret of a key from the outputs of the stack. */
  async function secretReader() {
    const read = () =>
      JSON.parse(stack.stateText("commonjs-program")).checkpoint.latest as {
        readonly secrets_providers: { readonly state: { readonly salt: string } };
        readonly resources: readonly {
          readonly type: string;
          readonly outputs?: Record<string, { ciphertext: string }>;
        }[];
      };
    const crypter = await openCrypter(PASSPHRASE, read().secrets_providers.state.salt);
    return (name: KeyName) => {
      const root = read().resources.find(({ type }) => type === "pulumi:pulumi:Stack");
      return JSON.parse(crypter.decrypt(root?.outputs?.[name]?.ciphertext ?? "")) as string;
    };
  }

  /** Sends requests at random times until the signal aborts. Each request has the newest secret. */
  async function sendRequests(newest: () => string, counts: Counts, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const client = createClient({ url: fleet.service.url, credential: apiKeyCredential(newest()) });
      counts.requests += 1;
      try {
        await client.getTags();
      } catch (error) {
        if (!(error instanceof AuthenticationError)) throw error;
        counts.rejected += 1;
      } finally {
        await client.close();
      }
      await delay(randomInt(30));
    }
  }

  it("reject no request of a client that reads the newest secret, unless the overlap is 0", async () => {
    await stack.result(["up", "--yes", "--skip-preview"]);
    const newest = await secretReader();
    const counts = { standard: { requests: 0, rejected: 0 }, careless: { requests: 0, rejected: 0 } };
    const stop = new AbortController();
    const clients = KEYS.map((name) => sendRequests(() => newest(name), counts[name], stop.signal));
    const failed = Promise.race(clients);
    const done = { replace: 0, update: 0 };
    let idle = 0;
    for (let day = INTERVAL; day <= YEAR; day += INTERVAL) {
      program.write("clock", String(day * DAY));
      const { steps, summary, diagnostics }: Result = await Promise.race([
        stack.result(["rotate", "--yes"]),
        failed.then(() => expect.unreachable("a client stopped")),
      ]);
      done.replace += summary.replace;
      done.update += summary.update;
      if (steps.length === 0) {
        idle += 1;
        expect(diagnostics).toMatchObject([{ message: "No API key is due." }]);
      }
    }
    stop.abort();
    await Promise.all(clients);
    const rows = KEYS.map(
      (name) => `${name}: ${counts[name].requests} requests, ${counts[name].rejected} times 401`,
    );
    console.log(
      [
        `${done.replace} rotations, ${done.update} later revocations, ${idle} runs without a due key`,
        ...rows,
      ].join("\n"),
    );
    // A key of 90 days rotates in the run on its 60th day. The next run revokes the replaced key after the overlap.
    expect(done).toEqual({ replace: 2 * 6, update: 5 });
    expect(idle).toBe(12 - 6 - 5);
    expect(counts.standard.rejected).toBe(0);
    expect(counts.standard.requests).toBeGreaterThan(100);
    expect(counts.careless.rejected).toBeGreaterThan(0);
    // The last run replaced both keys, and one replaced key still works.
    expect(await fleet.client.listApiKeys()).toHaveLength(3);
  });
});
