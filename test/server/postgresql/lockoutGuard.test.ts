import { expect, test } from "vitest";
import { openDatabase } from "../../../server/db/openDatabase.ts";
import { statusesOf } from "../http/answers.ts";
import { testApp } from "../http/appOfTest.ts";
import { addMember, workloadCaller } from "../http/fixtures.ts";
import { connect } from "./clients.ts";

test("of two instances that concurrently remove the two last administrators, one succeeds", async () => {
  let url = "";
  const here = await testApp({}, (location) => {
    if ("url" in location) url = location.url;
    return openDatabase(location);
  });
  const there = await testApp({}, () => openDatabase({ url, connections: 10 }));
  const { db } = here.services;
  const ana = await here.user("ana", "lab");
  const users = [
    await addMember(here, ana, "bob", "administrator"),
    await addMember(here, ana, "cy", "administrator"),
  ];
  const { tenant } = ana;
  const { token } = await workloadCaller(here, ana, "deploy");

  // The audit trail is locked until both writes wait for it, so both guards have already allowed their write.
  const lock = await connect(url);
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

  expect(await statusesOf(removals)).toEqual([200, 409]);
  expect(await db.member.count({ where: { tenantId: tenant, role: "administrator" } })).toBe(1);
});
