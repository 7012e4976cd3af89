import { expect } from "vitest";
import { findRow } from "../../../server/db/sql/rows.ts";
import { workloadSession } from "../../../server/features/trustedWorkloads/session.ts";
import { enroll, type TestApp, type TestUser } from "./testApp.ts";

/** Creates a user who is a member of the owner's namespace. The user's token is for this namespace. */
export async function addMember(
  app: TestApp,
  owner: TestUser,
  username: string,
  role: string,
  more: object = {},
): Promise<TestUser> {
  const user = await app.user(username);
  const { status, text } = await owner.call("inviteMember", { body: { email: user.email, role, ...more } });
  expect(status, text).toBe(200);
  const { tenant } = owner;
  return { ...user, tenant, token: await app.tokenOf({ ...user, tenant }) };
}

/** Enrolls a device in the owner's namespace, and accepts it. Returns the uid and the token of the device. */
export async function acceptedDevice(
  app: TestApp,
  owner: TestUser,
  hostname: string,
  enrolling = enroll,
): Promise<{ readonly uid: string; readonly token: string }> {
  const device = await enrolling(app, owner.tenant, `mac of ${hostname}`, { hostname });
  expect((await owner.call("acceptDevice", { params: { uid: device.uid } })).status).toBe(200);
  return device;
}

/** Returns the audit entries of the user's namespace, the latest first. */
// biome-ignore lint/suspicious/noExplicitAny: the contract checks the shape of the entries
export async function trailOf(user: TestUser, query: Record<string, string | number> = {}): Promise<any> {
  const { status, body } = await user.call("getAuditTrail", { query });
  expect(status).toBe(200);
  return body;
}

/** Delivers all mails. Returns the link in the newest mail to an address. */
export async function linkMailedTo(app: TestApp, address: string): Promise<URL> {
  await app.deliverMails();
  const text = app.mails.findLast(({ to }) => to === address)?.text ?? "";
  return new URL(/https:\S+/.exec(text)?.[0] ?? "none:");
}

/** A trusted workload, as the body of `createTrustedWorkload`. */
export const WORKLOAD = {
  name: "deploy",
  issuer: "https://issuer.example.org",
  audience: "gatehouse",
  claims: { repository: "fleet" },
  role: "administrator",
};

/** Creates a trusted workload in the owner's namespace. Returns a caller with a session of this workload. */
export async function workloadCaller(app: TestApp, owner: TestUser, name: string): Promise<TestUser> {
  const { body } = await owner.call("createTrustedWorkload", { body: { ...WORKLOAD, name } });
  return { ...owner, id: body.id, username: name, token: await workloadToken(app, owner.tenant, body.id) };
}

/** Returns the token of a new session of a trusted workload. */
export async function workloadToken({ services }: TestApp, tenantId: string, id: string): Promise<string> {
  const row = await findRow(services.db, "TrustedWorkload", { tenantId, id });
  if (row === null) throw new Error(`the workload ${id} is not stored`);
  return (await workloadSession(services, row, row.name, services.now())).token;
}

/** Returns an object that differs from the target in the given members. */
export const replacing = <T extends object>(target: T, members: { readonly [name: string]: unknown }): T =>
  new Proxy(target, {
    get: (_, name) =>
      Object.hasOwn(members, name) ? Reflect.get(members, name) : Reflect.get(target, name, target),
  });
