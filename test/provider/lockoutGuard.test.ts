import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { findRow } from "../../server/db/sql/rows.ts";
import { workloadSession } from "../../server/features/trustedWorkloads/session.ts";
import { withSharedApp } from "../server/http/appOfTest.ts";
import { PASSWORD, type TestUser } from "../server/http/testApp.ts";
import { Harness, type Program } from "./support/harness.ts";

const app = withSharedApp();
let namespaces = 0;
let owner: TestUser;
let users: Record<"bob" | "cy", TestUser>;
let harness: Harness;
const open: Harness[] = [];

beforeAll(async () => {
  users = { bob: await app.user("bob"), cy: await app.user("cy") };
});
beforeEach(async () => {
  namespaces += 1;
  owner = await app.user(`owner-${namespaces}`, `lab-${namespaces}`);
  for (const { email } of Object.values(users)) {
    const body = { email, role: "administrator" };
    expect((await owner.call("inviteMember", { params: { tenant: owner.tenant }, body })).status).toBe(200);
  }
  harness = programOf({ GATEHOUSE_USERNAME: "bob", GATEHOUSE_PASSWORD: PASSWORD });
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.close()));
});

/** Opens a program with a credential. */
function programOf(credential: Readonly<Record<string, string>>, stack?: string): Harness {
  const env = { GATEHOUSE_URL: app.url, GATEHOUSE_TENANT: owner.tenant, ...credential };
  const opened = new Harness(env, stack);
  open.push(opened);
  return opened;
}

const member = (name: keyof typeof users, more: object = {}): Program => ({
  [name]: { type: "Member", args: { email: users[name].email, role: "administrator", adopt: true, ...more } },
});

async function roles(): Promise<Record<string, string>> {
  const { body } = await owner.call("getNamespace", { params: { tenant: owner.tenant } });
  const members = body.members as { email: string; role: string }[];
  return Object.fromEntries(members.map(({ email, role }) => [email.split("@")[0], role]));
}

/** Returns the text of the failures of a run. */
async function failureOf(run: Promise<unknown>): Promise<string> {
  const failure = await run.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (!(failure instanceof AggregateError)) throw failure ?? new Error("the run succeeded");
  return failure.errors.map(String).join("\n");
}

const PERMISSIONS =
  "allowLockout: The change would remove permissions of the caller. Use the credential of another administrator, or set allowLockout: true";

describe("a run without a review that locks out its own user", () => {
  it("fails on the resource, and succeeds with allowLockout", async () => {
    expect(await harness.up(member("bob"))).toEqual(["create bob"]);
    const observer = { role: "observer" };
    expect(await failureOf(harness.up(member("bob", observer)))).toContain(PERMISSIONS);
    const ending = { expiresAt: "2100-01-01T00:00:00Z" };
    expect(await failureOf(harness.up(member("bob", ending)))).toContain(
      "The change would shorten the access of the caller",
    );
    expect(await roles()).toMatchObject({ bob: "administrator" });
    expect(await harness.preview(member("bob"))).toEqual([]);

    expect(await harness.up(member("bob", { ...observer, allowLockout: true }))).toEqual(["update bob"]);
    expect(await roles()).toMatchObject({ bob: "observer" });
  });

  it("fails on a deletion, until the state has allowLockout", async () => {
    await harness.up(member("bob"));
    const entry = harness.state.get("bob");
    if (entry === undefined) throw new Error("the state has no member");
    expect(await failureOf(harness.up({}))).toContain(`${PERMISSIONS} and apply that change first`);
    expect(await roles()).toMatchObject({ bob: "administrator" });
    // An engine keeps the resource whose deletion failed.
    harness.state.set("bob", entry);
    expect(await harness.up(member("bob", { allowLockout: true }))).toEqual(["update bob"]);
    expect(harness.state.get("bob")?.outputs).toMatchObject({ allowLockout: true });
    expect(await harness.refresh()).toEqual([]);
    expect(await harness.up({})).toEqual(["delete bob"]);
    expect(await roles()).not.toHaveProperty("bob");
  });

  it("fails on an adoption that overwrites the role", async () => {
    const overwriting = member("bob", { role: "observer", adopt: "overwrite" });
    await failureOf(harness.up(overwriting));
    expect(await roles()).toMatchObject({ bob: "administrator" });
  });
});

it("a state without allowLockout has no difference", async () => {
  await harness.up(member("bob"));
  const entry = harness.state.get("bob");
  if (entry === undefined) throw new Error("the state has no member");
  const { allowLockout, ...outputs } = entry.outputs;
  expect(allowLockout).toBe(false);
  harness.state.set("bob", { ...entry, outputs });
  expect(await harness.preview(member("bob"))).toEqual([]);
});

it("the guard blocks no rotation of an API key", async () => {
  const key = (keepers: object): Program => ({
    key: { type: "ApiKey", args: { name: "deploy", validDays: 30, overlap: 0, keepers } },
  });
  await harness.up(key({ year: "1" }));
  await harness.up(key({ year: "2" }));
  await harness.up({});
  expect((await owner.call("listApiKeys")).body).toEqual([]);
});

it("of two concurrent runs of a pipeline that each remove one of the last administrators, one fails", async () => {
  const { body } = await owner.call("createTrustedWorkload", {
    body: {
      name: "deploy",
      issuer: "https://issuer.example.org",
      audience: "gatehouse",
      claims: { repository: "fleet" },
      role: "administrator",
    },
  });
  const row = await findRow(app.services.db, "TrustedWorkload", { tenantId: owner.tenant, id: body.id });
  if (row === null) throw new Error("the workload is not stored");
  const { token } = await workloadSession(app.services, row, "deploy", app.services.now());
  const names = ["bob", "cy"] as const;
  const runs = names.map((name) => ({ name, run: programOf({ GATEHOUSE_TOKEN: token }, name) }));
  for (const { name, run } of runs) await run.up(member(name));
  const results = await Promise.allSettled(runs.map(({ run }) => run.up({})));
  expect(results.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  const failed = results.find((result) => result.status === "rejected");
  expect(await failureOf(Promise.reject(failed?.reason))).toContain(
    "The change would remove the last administrator except the owner. First add another administrator",
  );
  expect(Object.values(await roles()).sort()).toEqual(["administrator", "owner"]);
});
