import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { testFolder } from "../../support/folder.ts";
import { callServerCommand } from "../../support/serverCommand.ts";
import { runServerCommand, startService, type TestService, testService } from "../../support/service.ts";
import { expectFailure } from "../process/failure.ts";

/** Tries to start another service in this process. The start is expected to fail. */
const refusedOn = (url: string, dataDir = testFolder()) =>
  callServerCommand(["serve", "--data-dir", dataDir, "--port", "0", "--database-url", url]);

const IN_USE = /^gatehouse-server: The database [^\n]* is in use by another process[^\n]*\n$/;

async function expectUntouched(service: TestService, username: string): Promise<void> {
  expect((await fetch(`${service.url}/readyz`)).status).toBe(200);
  const { code, stdout } = await service.admin(["user", "list", "--json"]);
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject([{ username }]);
}

test("only one process can open the file, even under another name or from another data folder", async () => {
  const file = join(testFolder(), "shared.db");
  const first = await testService({ flags: ["--database-url", `file:${file}`] });
  await first.createUser({ username: "ann", password: "hunter22" });
  const link = join(testFolder(), "link.db");
  symlinkSync(file, link);
  expectFailure(await refusedOn(`file:${link}`), IN_USE);
  await expectUntouched(first, "ann");
});

test("one of several services that start together opens the file, and the other services report the reason", {
  tags: ["long"],
}, async () => {
  const url = `file:${join(testFolder(), "raced.db")}`;
  // The services share a secret, because they may open the same database one after another: if a service gets a port
  // that an earlier service had, `startService` restarts it, and another service can open the file in the meantime.
  const env = { GATEHOUSE_SECRET: "a secret that all services of a test have in common" };
  const starts = await Promise.allSettled(
    [1, 2, 3].map(() => startService({ flags: ["--database-url", url], env })),
  );
  const started = starts.flatMap((start) => (start.status === "fulfilled" ? [start.value] : []));
  const refused = starts.flatMap((start) => (start.status === "rejected" ? [String(start.reason)] : []));
  await Promise.all(started.map((service) => service.stop()));
  expect(started).toHaveLength(1);
  for (const reason of refused) expect(reason).toContain("is in use by another process");
});

test("after the first process is killed, the next process opens the file exclusively", {
  tags: ["long"],
}, async () => {
  const dataDir = testFolder();
  const first = await startService({ dataDir });
  await first.createUser({ username: "ann", password: "hunter22" });
  await first.kill();
  const next = await testService({ dataDir });
  const url = `file:${join(dataDir, "gatehouse.db")}`;
  expectFailure(await refusedOn(url), IN_USE);
  expectFailure(await runServerCommand(["serve", "--data-dir", dataDir, "--port", "0"]), IN_USE);
  await expectUntouched(next, "ann");
});
