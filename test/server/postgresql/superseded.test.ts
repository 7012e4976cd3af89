import { expect, onTestFinished, test } from "vitest";
import { INSTANCE_SECRET } from "../../support/instances.ts";
import { startService } from "../../support/service.ts";
import { emptyDatabase, query } from "./clients.ts";

test("an instance that a newer schema excludes stops without the lame-duck time", {
  tags: ["long"],
  timeout: 240_000,
}, async () => {
  const url = await emptyDatabase();
  const service = await startService({
    env: {
      GATEHOUSE_DATABASE_URL: url,
      GATEHOUSE_SECRET: INSTANCE_SECRET,
      GATEHOUSE_LAME_DUCK: "3600",
    },
  });
  onTestFinished(async () => void (await service.kill()));

  await query(
    url,
    `INSERT INTO "_migration" ("name", "checksum", "appliedAt", "oldestBeside")
     VALUES ('9999_newer', '', now(), '9999_newer')`,
  );
  expect(await service.ended).toBe(1);
  expect(service.output()).not.toContain("requests and logins are served for this time");
  expect(service.logs().at(-1)).toMatchObject({ msg: "stopped" });
});
