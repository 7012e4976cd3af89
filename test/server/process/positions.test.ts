import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { testFolder } from "../../support/folder.ts";
import { at, mmdbOf } from "../../support/mmdb.ts";
import { callServerCommand } from "../../support/serverCommand.ts";
import { testService } from "../../support/service.ts";
import { expectFailure } from "./failure.ts";

test("SIGHUP reads the file of positions again, and keeps the old positions if the new file is invalid", {
  tags: ["long"],
}, async () => {
  const file = join(testFolder(), "city.mmdb");
  writeFileSync(file, mmdbOf({ "8.8.8.8": at(1, 2) }));
  const service = await testService({ env: { GATEHOUSE_GEOIP_FILE: file } });
  const logged = (text: string) => vi.waitUntil(() => service.logs().some(({ msg }) => msg === text), 20_000);
  process.kill(service.pid, "SIGHUP");
  await logged("positions of addresses renewed");
  writeFileSync(file, "nonsense");
  process.kill(service.pid, "SIGHUP");
  await logged("cannot reload the positions of addresses; the previous positions stay in use");
  expect((await fetch(`${service.url}/healthcheck`)).status).toBe(200);
});

test("SIGHUP does not end a service without files to reload, since supervisors send this signal for a reload", {
  tags: ["long"],
}, async () => {
  const service = await testService();
  process.kill(service.pid, "SIGHUP");
  await vi.waitUntil(() => service.logs().some(({ msg }) => msg === "no files to reload"), 20_000);
  expect((await fetch(`${service.url}/healthcheck`)).status).toBe(200);
});

test("a service does not start with an invalid file, and reports it", async () => {
  const folder = testFolder();
  const file = join(folder, "city.mmdb");
  writeFileSync(file, "nonsense");
  const env = { GATEHOUSE_DATA_DIR: join(folder, "data"), GATEHOUSE_PORT: "0", GATEHOUSE_GEOIP_FILE: file };
  expectFailure(
    await callServerCommand(["serve"], { env }),
    `The position file ${file} (GATEHOUSE_GEOIP_FILE) is not a database in the MaxMind format.`,
  );
});
