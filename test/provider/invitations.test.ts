import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { definition } from "../../provider/resources/member/resource.ts";
import type { Connection } from "../../provider/service/connection.ts";
import { withSharedApp } from "../server/http/appOfTest.ts";
import { PASSWORD, type TestUser } from "../server/http/testApp.ts";
import { type LossyProxy, startLossyProxy } from "../support/proxy.ts";
import { startSparseService } from "../support/sparseService.ts";
import { Harness, type Program, testHarness } from "./support/harness.ts";

const WEEK = 7 * 24 * 3600;

const app = withSharedApp({ edition: "cloud" });
let owner: TestUser;
beforeAll(async () => {
  owner = await app.user("owner", "lab");
});
const settings = (url: string) => ({
  GATEHOUSE_URL: url,
  GATEHOUSE_USERNAME: owner.username,
  GATEHOUSE_PASSWORD: PASSWORD,
  GATEHOUSE_TENANT: owner.tenant,
});
const harness = testHarness(() => settings(app.url));
afterEach(() => void vi.useRealTimers());

const inviting = (email: string, role = "observer", args: object = {}): Program => ({
  it: { type: "Member", args: { email, role, ...args } },
});
const stateOf = () => harness.state.get("it");
const key = (userId: unknown) => ({
  tenantId_userId: { tenantId: owner.tenant, userId: String(userId) },
});
const stored = () => app.services.db.member.findUnique({ where: key(stateOf()?.outputs.userId) });
async function mailsTo(email: string) {
  await app.deliverMails();
  return app.mails.filter(({ to }) => to === email);
}
async function sigOf(email: string): Promise<string> {
  const link = /https:\S+/.exec((await mailsTo(email)).at(-1)?.text ?? "")?.[0] ?? "";
  return new URL(link).searchParams.get("sig") ?? "";
}
const accept = (token: string, sig: string) =>
  app.call("acceptInvite", { token, params: { tenant: owner.tenant }, body: { sig } });
/** Advances the clock of the provider and of the service, which both run in this process. */
function advance(seconds: number): void {
  vi.useFakeTimers({ now: Date.now() + seconds * 1000, toFake: ["Date"] });
}

describe("an invited user with an account", () => {
  it("gets one mail, and keeps the id as a member after accepting", async () => {
    const ana = await app.user("ana");
    expect(await harness.up(inviting(ana.email))).toEqual(["create it"]);
    const id = `${owner.tenant}/${ana.id}`;
    expect(stateOf()).toMatchObject({ id, outputs: { status: "invited", userId: ana.id } });
    expect(stateOf()?.outputs.invitationExpiresAt).not.toBe("");
    expect([await harness.refresh(), await harness.up(inviting(ana.email))]).toEqual([[], []]);
    expect(await mailsTo(ana.email)).toHaveLength(1);
    expect((await accept(ana.token, await sigOf(ana.email))).status).toBe(200);
    expect(await harness.refresh()).toEqual(["update it"]);
    expect(stateOf()).toMatchObject({ id, outputs: { status: "accepted", invitationExpiresAt: "" } });
    expect(await harness.preview(inviting(ana.email))).toEqual([]);
    await harness.up({});
    expect(await app.services.db.member.findUnique({ where: key(ana.id) })).toBeNull();
  });

  it("gets a changed role while the invitation is pending, and also after accepting the invitation without a refresh", async () => {
    const bob = await app.user("bob");
    await harness.up(inviting(bob.email));
    expect(await harness.up(inviting(bob.email, "operator"))).toEqual(["update it"]);
    expect(await stored()).toMatchObject({ role: "operator", status: "pending" });
    expect(await mailsTo(bob.email)).toHaveLength(1);
    await accept(bob.token, await sigOf(bob.email));
    expect(await harness.up(inviting(bob.email, "administrator"))).toEqual(["update it"]);
    expect(await stored()).toMatchObject({ role: "administrator", status: "accepted" });
    expect(stateOf()?.outputs).toMatchObject({ role: "administrator", status: "accepted" });
  });

  it("is deleted from the state by a refresh after the invitation was withdrawn, and is invited again", async () => {
    const cleo = await app.user("cleo");
    await harness.up(inviting(cleo.email));
    await app.services.db.member.delete({ where: key(cleo.id) });
    expect(await harness.refresh()).toEqual(["delete it"]);
    expect(await harness.up(inviting(cleo.email))).toEqual(["create it"]);
    expect(await mailsTo(cleo.email)).toHaveLength(2);
  });
});

describe("an invited user without an account", () => {
  it("registers, accepts and keeps the id", async () => {
    const email = "gina@example.org";
    await harness.up(inviting(email));
    const id = stateOf()?.id;
    const sig = await sigOf(email);
    const account = {
      name: "Gina",
      email,
      username: "gina",
      password: PASSWORD,
      email_marketing: false,
      sig,
    };
    const { body } = await app.call("registerUser", { body: account });
    expect(await harness.refresh()).toEqual([]);
    expect((await accept(body.token, sig)).status).toBe(200);
    expect(await harness.refresh()).toEqual(["update it"]);
    expect(stateOf()).toMatchObject({ id, outputs: { status: "accepted", accountEmail: email } });
  });

  it("is invited again by an up only after the invitation has expired", async () => {
    const email = "hugo@example.org";
    await harness.up(inviting(email));
    expect(await mailsTo(email)).toHaveLength(1);
    advance(WEEK + 60);
    expect(await harness.refresh()).toEqual(["update it"]);
    expect(stateOf()?.outputs.status).toBe("expired");
    expect(await harness.up(inviting(email))).toEqual(["update it"]);
    expect(stateOf()?.outputs.status).toBe("invited");
    expect(await mailsTo(email)).toHaveLength(2);
    expect(await harness.up(inviting(email))).toEqual([]);
  });

  it("loses the pending invitation with the deletion of the resource", async () => {
    await harness.up(inviting("ida@example.org"));
    const { userId } = stateOf()?.outputs ?? {};
    await harness.up({});
    expect(await app.services.db.member.findUnique({ where: key(userId) })).toBeNull();
  });
});

it("a Member with status pending in a state of an earlier version needs no replacement", async () => {
  await harness.up(inviting("jan@example.org"));
  const entry = stateOf();
  if (entry) harness.state.set("it", { ...entry, outputs: { ...entry.outputs, status: "pending" } });
  expect(await harness.preview(inviting("jan@example.org"))).toEqual([]);
  expect(await harness.preview(inviting("jan@example.org", "operator"))).toEqual(["update it"]);
  expect(await harness.refresh()).toEqual(["update it"]);
  expect(stateOf()?.outputs.status).toBe("invited");
});

it("two declarations of one invited user are duplicates", async () => {
  const program = { ...inviting("kim@example.org"), duplicate: inviting("KIM@example.org").it } as Program;
  await expect(harness.up(program)).rejects.toThrow(/manage the same object/);
  expect(await mailsTo("kim@example.org")).toHaveLength(1);
});

describe("an invitation request whose response is lost", () => {
  let proxy: LossyProxy;
  afterEach(() => proxy.stop());
  const isInvitation = (method: string, path: string) => method === "POST" && path.endsWith("/members");

  it("succeeds with one mail on a service with idempotency keys", async () => {
    proxy = await startLossyProxy(app.url);
    const through = new Harness(settings(proxy.url));
    proxy.loseAnswer(isInvitation);
    expect(await through.up(inviting("lena@example.org"))).toEqual(["create it"]);
    expect(await mailsTo("lena@example.org")).toHaveLength(1);
    await through.end();
  });

  it("adopts the listed invitation on a service without idempotency keys", async () => {
    const sparse = await startSparseService(app.url);
    proxy = await startLossyProxy(sparse.url);
    const through = new Harness(settings(proxy.url));
    proxy.loseAnswer(isInvitation);
    expect(await through.up(inviting("mona@example.org"))).toEqual(["create it"]);
    expect(through.state.get("it")?.outputs.status).toBe("invited");
    expect(await mailsTo("mona@example.org")).toHaveLength(1);
    await through.end();
    await sparse.stop();
  });
});

describe("the user of a Member", () => {
  const tenant = "3dd0d1f8-8246-4519-b11a-a3dd33717f65";
  const times = {
    addedAt: "2026-11-23T07:00:00.000Z",
    expiresAt: "0001-01-01T00:00:00Z",
    status: "accepted",
  };
  const members = [
    { id: "1".repeat(24), email: "owner@example.com", role: "owner", ...times },
    { id: "2".repeat(24), email: "ana@example.com", role: "observer", ...times },
  ];
  const connection = {
    namespaces: { find: async () => ({ tenantId: tenant, members }) },
    tenant: async () => ({ tenant }),
  } as unknown as Connection;
  const id = `${tenant}/${"3".repeat(24)}`;
  const found = async (id: string, state: Record<string, unknown>) =>
    (await definition.read(connection, id, state))?.id;

  it("is found by e-mail address until the invitation is accepted, and then only by id", async () => {
    const email = "ana@example.com";
    expect(await found(id, { email, status: "invited" })).toBe(`${tenant}/${"2".repeat(24)}`);
    expect(await found(id, { email, status: "accepted" })).toBeUndefined();
  });

  it("is not adopted or listed after declining, and not adopted after the invitation expired", async () => {
    const invitation = (digit: string, status: string, expiresAt: string) => ({
      user: { id: digit.repeat(24), email: `${digit}@example.com` },
      role: "observer",
      status,
      createdAt: times.addedAt,
      expiresAt,
    });
    const [past, future] = ["2026-11-24T07:00:00.000Z", "2999-01-01T00:00:00.000Z"];
    const invitations = {
      all: async () => [
        invitation("4", "pending", future),
        invitation("5", "pending", past),
        invitation("6", "rejected", future),
        // An earlier invitation of the same user.
        { ...invitation("4", "rejected", past), createdAt: "2026-11-01T07:00:00.000Z" },
      ],
    };
    // A service that returns no status for members has a separate list of invitations.
    const apart = {
      namespaces: {
        find: async () => ({ tenantId: tenant, members: [{ ...members[0], status: undefined }] }),
      },
      tenant: async () => ({ tenant, listing: () => invitations }),
    } as unknown as Connection;
    const adopted = async (digit: string) =>
      (await definition.find?.(apart, { email: `${digit}@example.com`, role: "observer" }))?.id;
    expect([await adopted("4"), await adopted("5"), await adopted("6")]).toEqual([
      `${tenant}/${"4".repeat(24)}`,
      undefined,
      undefined,
    ]);
    expect((await definition.list?.(apart, tenant))?.map(({ name }) => name)).toEqual([
      "4@example.com",
      "5@example.com",
    ]);
  });

  it("is never the owner", async () => {
    expect(await found(`${tenant}/${"1".repeat(24)}`, {})).toBeUndefined();
    expect(await found(`${tenant}/owner@example.com`, {})).toBeUndefined();
    expect(await found(id, { email: "owner@example.com", status: "invited" })).toBeUndefined();
  });
});
