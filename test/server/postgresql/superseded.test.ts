import { once } from "node:events";
import { connect } from "node:net";
import { Client as Connection } from "pg";
import { expect, onTestFinished, test } from "vitest";
import { INSTANCE_SECRET } from "../../support/instances.ts";
import { emptyPostgresql, postgresqlAddress } from "../../support/postgresql/database.ts";
import { startService } from "../../support/service.ts";

const patiently = { timeout: 100_000, interval: 20 };

test("an instance that a newer schema excludes stops without the lame-duck time, and the first signal does not kill it", {
  timeout: 240_000,
}, async () => {
  const { url, drop } = await emptyPostgresql(postgresqlAddress() ?? "");
  onTestFinished(drop);
  const service = await startService({
    env: {
      GATEHOUSE_DATABASE_URL: url,
      GATEHOUSE_SECRET: INSTANCE_SECRET,
      GATEHOUSE_LAME_DUCK: "3600",
      GATEHOUSE_SHUTDOWN_TIMEOUT: "3600",
    },
  });
  onTestFinished(async () => void (await service.kill()));

  // A request in progress delays the end of the service.
  const body = JSON.stringify({ username: "missing", password: "wrong-password" });
  const socket = connect(Number(new URL(service.url).port), "127.0.0.1").setEncoding("utf8");
  onTestFinished(() => void socket.destroy());
  const head = ["POST /api/login HTTP/1.1", "Host: test", "Content-Type: application/json"];
  socket.write(
    [...head, `Content-Length: ${body.length}`, "Expect: 100-continue", "", body.slice(0, 10)].join("\r\n"),
  );
  expect(String((await once(socket, "data"))[0])).toContain("100 Continue");

  const connection = new Connection(url);
  await connection.connect();
  await connection.query(
    `INSERT INTO "_migration" ("name", "checksum", "appliedAt", "oldestBeside")
     VALUES ('9999_newer', '', now(), '9999_newer')`,
  );
  await connection.end();
  const reachable = () =>
    fetch(`${service.url}/healthz`).then(
      () => true,
      () => false,
    );
  await expect.poll(reachable, patiently).toBe(false);
  expect(service.output()).not.toContain("requests and logins are served for this time");

  process.kill(service.pid, "SIGTERM");
  await expect.poll(() => service.output(), patiently).toContain('"msg":"stopping"');
  const answer = once(socket, "data");
  socket.write(body.slice(10));
  expect(String((await answer)[0])).toMatch(/^HTTP\/1\.1 401 /);
  expect(await service.ended).toBe(1);
  expect(service.logs().at(-1)).toMatchObject({ msg: "stopped" });
});
