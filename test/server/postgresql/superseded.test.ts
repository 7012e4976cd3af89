import { Client as Connection } from "pg";
import { expect, onTestFinished, test } from "vitest";
import { INSTANCE_SECRET } from "../../support/instances.ts";
import { emptyPostgresql, postgresqlAddress } from "../../support/postgresql/database.ts";
import { startService } from "../../support/service.ts";

test("an instance that a newer schema excludes stops without the lame-duck time", {
  timeout: 240_000,
}, async () => {
  const { url, drop } = await emptyPostgresql(postgresqlAddress() ?? "");
  onTestFinished(drop);
  const service = await startService({
    env: {
      GATEHOUSE_DATABASE_URL: url,
      GATEHOUSE_SECRET: INSTANCE_SECRET,
      GATEHOUSE_LAME_DUCK: "3600",
    },
  });
  onTestFinished(async () => void (await service.kill()));

  const connection = new Connection(url);
  await connection.connect();
  await connection.query(
    `INSERT INTO "_migration" ("name", "checksum", "appliedAt", "oldestBeside")
     VALUES ('9999_newer', '', now(), '9999_newer')`,
  );
  await connection.end();
  expect(await service.ended).toBe(1);
  expect(service.output()).not.toContain("requests and logins are served for this time");
  expect(service.logs().at(-1)).toMatchObject({ msg: "stopped" });
});
