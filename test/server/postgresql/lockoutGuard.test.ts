import { Client } from "pg";
import { expect, onTestFinished, test } from "vitest";
import { openDatabase } from "../../../server/db/openDatabase.ts";
import { findRow } from "../../../server/db/sql/rows.ts";
import { workloadSession } from "../../../server/features/trustedWorkloads/session.ts";
import { testApp } from "../http/appOfTest.ts";

test("of two instances that concurrently remove the two last administrators, one succeeds", async () => {
  let url = "";
  const here = await testApp({}, (location) => {
    if ("url" in location) url = location.url;
    return openDatabase(location);
  });
  const there = await testApp({}, () => openDatabase({ url, connections: 10 }));
  const { db } = here.services;
  const ana = await here.user("ana", "lab");
  const users = await Promise.all(["bob", "cy"].map((name) => here.user(name)));
  const { tenant } = ana;
  for (const { email } of users) {
    const body = { email, role: "administrator" };
    expect((await ana.call("inviteMember", { params: { tenant }, body })).status).toBe(200);
  }
  const { body } = await ana.call("createTrustedWorkload", {
    body: {
      name: "deploy",
      issuer: "https://issuer.example.org",
      audience: "gatehouse",
      claims: { repository: "fleet" },
      role: "administrator",
    },
  });
  const row = await findRow(db, "TrustedWorkload", { tenantId: tenant, id: body.id });
  if (row === null) throw new Error("the workload is not stored");
  const { token } = await workloadSession(here.services, row, "deploy", here.services.now());

  // The audit trail is locked until both writes wait for it, so both guards have already allowed their write.
  const lock = new Client(url);
  await lock.connect();
  onTestFinished(() => lock.end());
  await lock.query(`BEGIN; LOCK TABLE "AuditEntry" IN SHARE MODE`);
  const removals = [here, there].map((instance, index) =>
    instance.call("removeMember", {
      token,
      params: { tenant, uid: users[index]?.id ?? "" },
      headers: { "gatehouse-lockout-guard": "on" },
    }),
  );
  const waiting = async () =>
    (await lock.query(`SELECT 1 FROM pg_locks WHERE relation = '"AuditEntry"'::regclass AND NOT granted`))
      .rowCount;
  await expect.poll(waiting).toBe(2);
  await lock.query("COMMIT");

  const answers = await Promise.all(removals);
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
  expect(await db.member.count({ where: { tenantId: tenant, role: "administrator" } })).toBe(1);
});
