import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Fleet, startFleet } from "../../support/fleet.ts";
import { type HoldingProxy, startHoldingProxy } from "../../support/proxy.ts";
import type { Named, Scenario } from "./scenario.ts";

/** A new service, furnished for a scenario. */
export interface Stage {
  readonly fleet: Fleet;
  /** Between the plugin and the service. */
  readonly proxy: HoldingProxy;
  /** What is known by a name so far. */
  named: Named;
  close(): Promise<void>;
}

/** Makes all that a scenario needs before its first step. */
export async function openStage({ users, furnish }: Scenario): Promise<Stage> {
  const fleet = await startFleet(users);
  const proxy = await startHoldingProxy(fleet.service.url);
  const folder = mkdtempSync(join(tmpdir(), "gatehouse-test-"));
  const { tenant } = fleet;
  const password = fleet.env.GATEHOUSE_PASSWORD ?? "";
  return {
    fleet,
    proxy,
    named: { folder, url: proxy.url, tenant, password, ...(await furnish(fleet)) },
    async close() {
      await proxy.stop();
      await fleet.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
