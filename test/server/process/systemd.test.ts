import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { testFolder } from "../../support/folder.ts";
import { startService } from "../../support/service.ts";

it("reports its start, its liveness and its stop to systemd", { tags: ["long"] }, async () => {
  const folder = testFolder();
  const reports = join(folder, "reports");
  const program = join(folder, "systemd-notify");
  writeFileSync(program, `#!/bin/sh\necho "$@ to $NOTIFY_SOCKET" >> ${reports}\n`);
  chmodSync(program, 0o755);
  const service = await startService({
    env: { NOTIFY_SOCKET: "/run/notify", WATCHDOG_USEC: "300000", PATH: `${folder}:${process.env.PATH}` },
  });
  const lines = () => (existsSync(reports) ? readFileSync(reports, "utf8").trimEnd().split("\n") : []);
  await expect
    .poll(() => lines().filter((line) => line === "WATCHDOG=1 to /run/notify").length)
    .toBeGreaterThan(1);
  expect(lines()[0]).toBe("--ready to /run/notify");
  await service.stop();
  await expect.poll(lines).toContain("STOPPING=1 to /run/notify");
});
