import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { it, onTestFinished } from "vitest";
import { letKeyExpire } from "../support/letKeyExpire.ts";
import { openFolder, startAgent, startSshService, withoutSsh } from "../support/sshFleet.ts";

const CLOCK = new URL("../support/movedClock.ts", import.meta.url).href;

// The test runs the command five times as a process, because the clock of each process is moved.
it.skipIf(withoutSsh)(
  `a key with an end is reviewed, expires during a session, and stays quiet in later runs${withoutSsh ? ` (${withoutSsh})` : ""}`,
  { timeout: 240_000, tags: ["long"] },
  async () => {
    const folder = openFolder();
    onTestFinished(() => folder.remove());
    const file = join(folder.path, "clock");
    writeFileSync(file, "0");
    const clock = { NODE_OPTIONS: `--import=${CLOCK}`, MOVED_CLOCK: file };
    const fleet = await startSshService({ env: clock });
    onTestFinished(() => fleet.stop());
    const { service, client, tenant, namespace, user, port } = fleet;
    const agent = await startAgent({ url: service.url, tenant, hostname: "edge-1", folder: folder.path });
    onTestFinished(() => agent.kill());
    await client.acceptDevice({ params: { uid: agent.uid } });
    await letKeyExpire({
      ports: [port],
      to: `root@${namespace}.edge-1`,
      folder: folder.path,
      env: {
        ...clock,
        GATEHOUSE_URL: service.url,
        GATEHOUSE_USERNAME: user.username,
        GATEHOUSE_PASSWORD: user.password,
      },
      endsWithin: 2_000,
      moveClock: async (ahead) => writeFileSync(file, String(ahead)),
    });
  },
);
