import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createClient, passwordCredential } from "@gatehouse-access/sdk";
import { it, onTestFinished } from "vitest";
import { startPeers } from "../../support/instances.ts";
import { letKeyExpire } from "../../support/letKeyExpire.ts";
import { postgresqlAddress } from "../../support/postgresql/database.ts";
import type { TestService } from "../../support/service.ts";
import { newKey, openFolder, sshPortOf, startAgent, withoutSsh } from "../../support/sshFleet.ts";
import { query } from "./clients.ts";

const CLOCK = new URL("../../support/movedClock.ts", import.meta.url).href;

/** Gives a database a clock that differs from the clock of its machine. */
const prepareClock = (url: string) =>
  query(
    url,
    `CREATE SCHEMA moved;
    CREATE TABLE moved.clock AS SELECT interval '0' AS ahead;
    CREATE FUNCTION moved.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
      AS 'SELECT pg_catalog.clock_timestamp() + ahead FROM moved.clock';
    ALTER DATABASE ${new URL(url).pathname.slice(1)} SET search_path = public, moved, pg_catalog`,
  );

// The test runs the command five times as a process, because the clock of each process is moved.
it.skipIf(withoutSsh)(
  `a key expires on two instances by the clock of their database${withoutSsh ? ` (${withoutSsh})` : ""}`,
  { timeout: 240_000, tags: ["long"] },
  async () => {
    const folder = openFolder();
    onTestFinished(() => folder.remove());
    const settings = {
      GATEHOUSE_SSH_HOST_KEY_FILE: newKey(folder.path, "host"),
      GATEHOUSE_SSH_REFUSALS_PER_ADDRESS: "0",
    };
    const instances = await startPeers(postgresqlAddress() ?? "", 2, settings, prepareClock);
    onTestFinished(() => instances.stop());
    const [here, there] = instances.services as [TestService, TestService];
    const user = await here.setup();
    const client = createClient({ url: there.url, credential: passwordCredential(user) });
    onTestFinished(() => client.close());
    const [namespace] = await client.getNamespaces({});
    const { name = "", tenantId: tenant = "" } = namespace ?? {};
    const agent = await startAgent({ url: here.url, tenant, hostname: "edge-1", folder: folder.path });
    onTestFinished(() => agent.kill());
    await client.acceptDevice({ params: { uid: agent.uid } });
    // The clocks of the instances stay at the real time; only `gatehouse` and the database have the moved time.
    const file = join(folder.path, "clock");
    writeFileSync(file, "0");
    await letKeyExpire({
      ports: [sshPortOf(here), sshPortOf(there)],
      to: `root@${name}.edge-1`,
      folder: folder.path,
      env: {
        NODE_OPTIONS: `--import=${CLOCK}`,
        MOVED_CLOCK: file,
        GATEHOUSE_URL: here.url,
        GATEHOUSE_USERNAME: user.username,
        GATEHOUSE_PASSWORD: user.password,
      },
      // The instances measure the time of the database every five seconds.
      endsWithin: 7_000,
      moveClock: async (ahead) => {
        await query(instances.databaseUrl, `UPDATE moved.clock SET ahead = interval '${ahead} ms'`);
        writeFileSync(file, String(ahead));
      },
    });
  },
);
