import { randomBytes } from "node:crypto";
import { LOCKOUTS, type LockoutName, operations, takesLockoutGuard } from "@gatehouse-access/sdk/contract";
import { beforeEach, describe, expect, test } from "vitest";
import { expectError } from "../http/answers.ts";
import { withAppAndUser } from "../http/appOfTest.ts";
import { addMember, WORKLOAD, workloadCaller } from "../http/fixtures.ts";
import type { CallOptions, TestUser } from "../http/testApp.ts";

type Id = keyof typeof operations;

const { app, ana } = withAppAndUser();
const ON = { "gatehouse-lockout-guard": "on" };
const DAY = 24 * 60 * 60;

let bob: TestUser;
let cy: TestUser;
beforeEach(async () => {
  app.stopClock();
  bob = await addMember(app, ana, "bob", "administrator");
  cy = await addMember(app, ana, "cy", "administrator");
});

const inDays = (days: number) => new Date(app.services.now().getTime() + days * DAY * 1000).toISOString();
const guarded = (by: TestUser, id: Id, options: CallOptions) =>
  by.call(id, { ...options, headers: { ...options.headers, ...ON } });
const member = ({ id }: TestUser) => ({ uid: id });
const update = (by: TestUser, of: TestUser, body: object) =>
  guarded(by, "updateMember", { params: member(of), body });
const remove = (by: TestUser, of: TestUser) => guarded(by, "removeMember", { params: member(of) });

/** Everything that a refused write could change: the members, the workloads, the API keys and the audit trail. */
const everything = async () => {
  const reads = ["getNamespace", "listTrustedWorkloads", "listApiKeys", "getAuditTrail"] as const;
  return (await Promise.all(reads.map((id) => ana.call(id)))).map(({ status, body }) => [status, body]);
};

/** Expects that the guard refuses the write because of this lockout, and that the write changes nothing. */
async function expectRefused(write: () => ReturnType<TestUser["call"]>, lockout: LockoutName) {
  const before = await everything();
  const { status, body, headers } = await write();
  expect([status, body.message]).toEqual([
    409,
    expect.stringContaining(`the write would ${LOCKOUTS[lockout].effect}: `),
  ]);
  expect(body.message).toMatch(/, or omit the header Gatehouse-Lockout-Guard \(allowLockout in a program\)$/);
  expect(headers.get("gatehouse-lockout-guard")).toBe(lockout);
  expect(await everything()).toEqual(before);
}

const workload = (name = "deploy") => workloadCaller(app, ana, name);

describe("refuses a write that locks out the calling user:", () => {
  test.each<[string, LockoutName, (by: TestUser) => ReturnType<TestUser["call"]>]>([
    ["removal", "caller-removed", (by) => remove(by, by)],
    ["demotion", "caller-removed", (by) => update(by, by, { role: "operator" })],
    ["end in the past", "caller-removed", (by) => update(by, by, { access_expires_at: inDays(-1) })],
    ["end in the future", "caller-shortened", (by) => update(by, by, { access_expires_at: inDays(90) })],
  ])("%s", async (_, lockout, write) => {
    await expectRefused(() => write(bob), lockout);
    const { status } = await bob.call("listApiKeys");
    expect(status).toBe(200);
  });

  test("an earlier end, but not a later end", async () => {
    await ana.call("updateMember", { params: member(bob), body: { access_expires_at: inDays(10) } });
    expect((await update(bob, bob, { access_expires_at: inDays(20) })).status).toBe(200);
    const earlier = () => update(bob, bob, { access_expires_at: inDays(19) });
    await expectRefused(earlier, "caller-shortened");
    expect((await update(bob, bob, { access_expires_at: null })).status).toBe(200);
  });
});

describe("refuses a write that locks out the calling workload:", () => {
  test("deletion, and changes of role, issuer, audience and claims", async () => {
    const by = await workload();
    const params = { id: by.id };
    const put = (more: object) =>
      guarded(by, "updateTrustedWorkload", { params, body: { ...WORKLOAD, ...more } });
    const lockout = "caller-removed";
    await expectRefused(() => guarded(by, "deleteTrustedWorkload", { params }), lockout);
    await expectRefused(() => put({ role: "operator" }), lockout);
    await expectRefused(() => put({ issuer: "https://other.example.org" }), lockout);
    await expectRefused(() => put({ audience: "other" }), lockout);
    await expectRefused(() => put({ claims: { repository: "fleet", ref: "main" } }), lockout);
    expect((await put({ max_session_minutes: 5, name: "release" })).status).toBe(200);
    expect((await by.call("listApiKeys")).status).toBe(200);
  });

  test("not another workload, and not with the credential of a user", async () => {
    const [by, other] = [await workload("deploy"), await workload("other")];
    expect((await guarded(by, "deleteTrustedWorkload", { params: { id: other.id } })).status).toBe(200);
    expect((await guarded(bob, "deleteTrustedWorkload", { params: { id: by.id } })).status).toBe(200);
  });
});

describe("refuses the loss of the administrators except the owner:", () => {
  test("removal and demotion by a workload", async () => {
    const by = await workload();
    expect((await remove(by, bob)).status).toBe(200);
    const lockout = "administrators-removed";
    await expectRefused(() => remove(by, cy), lockout);
    await expectRefused(() => update(by, cy, { role: "observer" }), lockout);
    await expectRefused(() => update(by, cy, { access_expires_at: inDays(-1) }), lockout);
    // An administrator who cannot log in does not count.
    const { id } = await addMember(app, ana, "dan", "administrator");
    await app.services.db.user.update({ where: { id }, data: { status: "not-confirmed" } });
    await expectRefused(() => remove(by, cy), lockout);
    await app.services.db.user.update({ where: { id }, data: { status: "confirmed" } });
    expect((await remove(by, cy)).status).toBe(200);
  });

  test.each<[string, object]>([
    ["has not accepted the invitation", { status: "pending" }],
    ["is an operator", { role: "operator" }],
    ["has an ended membership", { accessExpiresAt: new Date("2026-01-01T00:00:00Z") }],
  ])("if the other administrator %s", async (_, data) => {
    const by = await workload();
    const of = { tenantId: ana.tenant, userId: cy.id };
    await app.services.db.member.updateMany({ where: of, data });
    await expectRefused(() => remove(by, bob), "administrators-removed");
  });

  test("an earlier end of the administrator whose access lasts longest", async () => {
    const by = await workload();
    expect((await update(by, bob, { access_expires_at: inDays(10) })).status).toBe(200);
    const lockout = "administrators-shortened";
    await expectRefused(() => update(by, cy, { access_expires_at: inDays(20) }), lockout);
    await expectRefused(() => remove(by, cy), lockout);
    expect((await remove(by, bob)).status).toBe(200);
  });

  test("not by the owner, who can appoint administrators again", async () => {
    expect((await remove(ana, bob)).status).toBe(200);
    expect((await remove(ana, cy)).status).toBe(200);
  });

  test("not if there was no such administrator", async () => {
    const by = await workload();
    await remove(ana, bob);
    await remove(ana, cy);
    const dan = await addMember(app, ana, "dan", "operator");
    expect((await remove(by, dan)).status).toBe(200);
  });
});

describe("the header Gatehouse-Lockout-Guard", () => {
  test("changes no write that locks out neither the caller nor the administrators", async () => {
    expect((await update(bob, cy, { role: "operator" })).status).toBe(200);
    await bob.call("createApiKey", { body: { name: "key", expires_at: 30 } });
    expect(
      (await guarded(bob, "updateApiKey", { params: { key: "key" }, body: { name: "other" } })).status,
    ).toBe(200);
    expect((await guarded(bob, "deleteApiKey", { params: { key: "other" } })).status).toBe(200);
    const unknown = { params: { ...member(bob), uid: randomBytes(12).toString("hex") } };
    expect((await guarded(bob, "removeMember", unknown)).status).toBe(404);
  });

  test("is required: without the header, the service accepts the write", async () => {
    expect((await bob.call("removeMember", { params: member(bob) })).status).toBe(200);
    expect((await cy.call("updateMember", { params: member(cy), body: { role: "observer" } })).status).toBe(
      200,
    );
  });

  test("accepts no other value", async () => {
    for (const value of ["off", "", "ON", "on, on"]) {
      const headers = { "gatehouse-lockout-guard": value };
      expectError(
        await bob.call("removeMember", { params: member(cy), headers }),
        400,
        "Gatehouse-Lockout-Guard must be on",
      );
    }
  });

  test("has no effect on operations that do not accept it, such as leaving a namespace", async () => {
    const { tenant } = ana;
    const headers = { "gatehouse-lockout-guard": "off" };
    expect((await bob.call("leaveNamespace", { params: { tenant }, headers })).status).toBe(200);
  });

  test("is an addition to the writes of members, API keys and trusted workloads", () => {
    expect(
      Object.values(operations)
        .filter(takesLockoutGuard)
        .map(({ id }) => id)
        .sort(),
    ).toEqual([
      "deleteApiKey",
      "deleteTrustedWorkload",
      "removeMember",
      "updateApiKey",
      "updateMember",
      "updateTrustedWorkload",
    ]);
  });
});
