// The attacks of hostile tenants. As a worker thread, this file runs one attack, so that the attack does not slow down
// the measuring thread.
import { setTimeout as wait } from "node:timers/promises";
import { isMainThread, parentPort, workerData } from "node:worker_threads";
import { Pool } from "undici";
import type { Attacker } from "./tenants/tenantCase.ts";
import { TENANT_CASES, type TenantCaseName } from "./tenants/tenantCases.ts";

/** The input of the thread. */
export interface TenantOrder extends Omit<Attacker, "pool" | "count"> {
  readonly name: TenantCaseName;
  /** The result of the case's preparation. */
  readonly prepared: unknown;
}

/** Pause after a failed run, in milliseconds. */
const PAUSE = 50;

function execute({ name, prepared, ...place }: TenantOrder): void {
  const { parallel = 4, run } = TENANT_CASES[name];
  const results: Record<string, number> = {};
  parentPort?.on("message", () => parentPort?.postMessage(results));
  const count = (result: string | number) => {
    results[result] = (results[result] ?? 0) + 1;
  };
  const pool = new Pool(place.url, { connections: parallel, bodyTimeout: 0, headersTimeout: 0 });
  const attacker: Attacker = { ...place, pool, count };
  const repeat = async () => {
    for (;;) {
      try {
        await run(attacker, prepared);
      } catch (error) {
        count((error as Error).name);
        await wait(PAUSE);
      }
    }
  };
  process.on("uncaughtException", () => count("uncaught"));
  for (let index = 0; index < parallel; index += 1) void repeat();
  parentPort?.postMessage("started");
}

if (!isMainThread) execute(workerData);
