import { ROLES, type Role } from "@gatehouse-access/sdk/contract";
import { expect } from "vitest";
import { rulesDigest } from "../../../../server/http/access/authenticate.ts";
import { signWorkloadToken } from "../../../../server/http/access/tokens.ts";
import { enrollProven, type TestApp, type TestUser } from "../testApp.ts";

/** A namespace with a member, an API key and a trusted workload for each role, and a device. */
export interface PreparedNamespace {
  readonly tenant: string;
  readonly owner: TestUser;
  /** Members by role. Their tokens are for this namespace. */
  readonly members: ReadonlyMap<Role, TestUser>;
  /** Secrets of the API keys, by role. The name of each key is its role. */
  readonly keys: ReadonlyMap<Role, string>;
  /** Trusted workloads, by role. The name of each workload is its role. */
  readonly workloads: ReadonlyMap<Role, TestWorkload>;
  readonly uid: string;
  readonly deviceToken: string;
}

/** A trusted workload with a session. */
interface TestWorkload {
  readonly id: string;
  readonly token: string;
}

/** Two unrelated namespaces, and users with limited access to them. */
export interface MatrixFixture {
  readonly app: TestApp;
  readonly lab: PreparedNamespace;
  readonly elsewhere: PreparedNamespace;
  /** An administrator of the lab. This user owns the namespace `own`. */
  readonly guest: TestUser;
  readonly own: string;
  readonly outsider: TestUser;
  readonly pending: TestUser;
  readonly removed: TestUser;
}

let fixtures = 0;
let devices = 0;

/** Returns a MAC address that no device has. */
export const newMac = (): string => {
  devices += 1;
  return `02:00:00:00:${[devices >> 8, devices & 255].map((byte) => byte.toString(16).padStart(2, "0")).join(":")}`;
};

/** Creates a membership directly in the database. A cloud instance would otherwise wait for the user's consent. */
async function addMember(
  app: TestApp,
  tenantId: string,
  userId: string,
  role: Role,
  status = "accepted",
): Promise<void> {
  const addedAt = app.services.now();
  await app.services.db.member.create({ data: { tenantId, userId, role, status, addedAt } });
}

/** Creates an API key whose name is its role. Returns the secret of the key. */
async function makeKey(app: TestApp, { token }: TestUser, role: Role): Promise<string> {
  const body = { name: role, expires_at: 30, role };
  const key = await app.call("createApiKey", { token, body });
  expect(key.status).toBe(200);
  return key.body.id;
}

/** Creates a trusted workload, and signs the token of its session. */
export async function makeWorkload(app: TestApp, { token, tenant }: TestUser, name: string, role: Role) {
  const rules = { issuer: "https://issuer.example.org", audience: "gate", claims: { sub: name } };
  const { status, body } = await app.call("createTrustedWorkload", { token, body: { name, role, ...rules } });
  expect(status).toBe(200);
  const { id } = body;
  const subject = {
    id,
    tenant,
    name: `job of ${name}`,
    startedAt: app.services.now(),
    rules: rulesDigest({ ...rules, claims: JSON.stringify(rules.claims) }),
  };
  const last = new Date(app.services.now().getTime() + 60 * 60_000);
  return { id, token: (await signWorkloadToken(app.services, subject, last)).token } satisfies TestWorkload;
}

async function prepareNamespace(app: TestApp, name: string): Promise<PreparedNamespace> {
  const owner = await app.user(`${name}-owner`, name);
  const { tenant } = owner;
  const members = new Map<Role, TestUser>([["owner", owner]]);
  const keys = new Map<Role, string>();
  const workloads = new Map<Role, TestWorkload>();
  for (const role of ROLES) {
    if (role !== "owner") {
      const user = await app.user(`${name}-${role}`);
      await addMember(app, tenant, user.id, role);
      members.set(role, { ...user, tenant, token: await app.tokenOf({ ...user, tenant }) });
      workloads.set(role, await makeWorkload(app, owner, role, role));
    }
    keys.set(role, await makeKey(app, owner, role));
  }
  const { uid, token: deviceToken } = await enrollProven(app, tenant, newMac());
  return { tenant, owner, members, keys, workloads, uid, deviceToken };
}

/** Creates a fixture. One service can have several separate fixtures. */
export async function createFixture(app: TestApp): Promise<MatrixFixture> {
  fixtures += 1;
  const name = (text: string) => `${text}${fixtures}`;
  const lab = await prepareNamespace(app, name("lab"));
  const elsewhere = await prepareNamespace(app, name("elsewhere"));
  const guest = await app.user(name("guest"), name("guests"));
  await addMember(app, lab.tenant, guest.id, "administrator");
  // Every namespace then has an API key and a workload with the name `observer`, so a request that uses this name as a
  // new name fails.
  await makeKey(app, guest, "observer");
  await makeWorkload(app, guest, "observer", "observer");
  const pending = await app.user(name("pending"));
  await addMember(app, lab.tenant, pending.id, "administrator", "pending");
  // A former member, whose token was valid until the membership ended.
  const removed = await app.user(name("removed"));
  await addMember(app, lab.tenant, removed.id, "administrator");
  const params = { tenant: lab.tenant, uid: removed.id };
  const removal = await lab.owner.call("removeMember", { params });
  expect(removal.status).toBe(200);
  const outsider = await app.user(name("outsider"));
  return { app, lab, elsewhere, guest, own: guest.tenant, outsider, pending, removed };
}
