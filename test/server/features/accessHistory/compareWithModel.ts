import type { Role } from "@gatehouse-access/sdk/contract";
import { expect } from "vitest";
import { PASSWORD, type TestApp } from "../../http/testApp.ts";
import { above, type Credential, Model, type Place, type User } from "./model.ts";
import { credentialsOf } from "./plans.ts";

let runs = 0;

/** Creates five users. Two users own a namespace each, and two other users are members of the first namespace. */
export async function createModel(app: TestApp): Promise<Model> {
  runs += 1;
  const now = app.services.now().getTime() / 1000;
  const users: User[] = [];
  const places: Place[] = [];
  const tokens: { user: User; tenant: string; token: string }[] = [];
  for (const name of ["ana", "ben", "cleo", "dan", "eve"]) {
    const owns = places.length < 2 ? `${name}-${runs}-lab` : undefined;
    const { id, username, email, tenant, token } = await app.user(`${name}-${runs}`, owns);
    const user = {
      id,
      username,
      email,
      password: PASSWORD,
      version: 0,
      kept: null,
      preferred: null,
      failures: new Map(),
    };
    users.push(user);
    tokens.push({ user, tenant, token });
    const members = new Map<User, { role: Role; since: number }>([[user, { role: "owner", since: now }]]);
    if (owns) places.push({ tenant, members, keys: new Map() });
  }
  const model = new Model(now, users, places);
  for (const { user, tenant, token } of tokens) model.addToken(user, tenant, token, null);
  const [lab] = places;
  for (const [index, role] of [
    [2, "administrator"],
    [3, "operator"],
  ] as const) {
    const user = users[index];
    if (lab === undefined || user === undefined) throw new Error("a user or namespace is missing");
    const params = { tenant: lab.tenant };
    const body = { email: user.email, role };
    const invited = await app.call("inviteMember", { token: tokens[0]?.token, params, body });
    expect(invited.status).toBe(200);
    lab.members.set(user, { role, since: now });
    const session = await app.call("getNamespaceToken", { token: tokens[index]?.token, params });
    user.preferred = lab.tenant;
    model.addToken(user, lab.tenant, session.body.token, null);
  }
  return model;
}

/**
 * Returns the roles in the service's database. Each namespace has the roles of members, by user, and the roles of keys,
 * by name.
 */
export async function rolesIn(app: TestApp, model: Model): Promise<Map<string, Role>> {
  const where = { tenantId: { in: model.places.map((place) => place.tenant) } };
  const members = await app.services.db.member.findMany({ where });
  const keys = await app.services.db.apiKey.findMany({ where });
  return new Map([
    ...members.map(({ tenantId, userId, role }) => [`${tenantId} member ${userId}`, role as Role] as const),
    ...keys.map(({ tenantId, name, role }) => [`${tenantId} key ${name}`, role as Role] as const),
  ]);
}

/** Returns the roles in the model, in the same form as the database's roles. */
export const rolesOf = (model: Model): Map<string, Role> =>
  new Map(
    model.places.flatMap(({ tenant, members, keys }) => [
      ...[...members].map(([user, { role }]) => [`${tenant} member ${user.id}`, role] as const),
      ...[...keys].map(([name, { role }]) => [`${tenant} key ${name}`, role] as const),
    ]),
  );

/**
 * For each role, one operation that requires this role. If the caller has the role, the operation returns the status
 * `allowed` and changes nothing. Otherwise, it returns 403.
 */
const PROBES = {
  observer: { id: "getDevices", allowed: 200 },
  operator: { id: "acceptDevice", allowed: 404, params: { uid: "0".repeat(64) } },
  administrator: { id: "getAuditTrail", allowed: 200 },
  owner: { id: "deleteNamespace", allowed: 412, headers: { "if-match": '"another"' } },
} as const;

/**
 * Checks that a credential can call the {@link PROBES} operation of its own role, but not that of the next higher role.
 */
export async function expectStanding(app: TestApp, model: Model, credential: Credential): Promise<void> {
  const standing = model.standing(credential);
  const { tenant } = credential;
  const probe = async (role: Role) => {
    const { id, allowed, ...options } = { params: {}, ...PROBES[role] };
    const params = { ...options.params, ...(id !== "getDevices" && { tenant }) };
    const { status } = await app.call(id, { ...options, params, ...credentialsOf(credential) });
    return status === allowed ? "open" : status;
  };
  const { secret, ...shown } = credential;
  const role = standing?.role ?? null;
  if (standing === null || role === null) {
    expect(await probe("observer"), JSON.stringify(shown)).toBe(standing === null ? 401 : 403);
    return;
  }
  const next = above(role);
  expect([await probe(role), next ? await probe(next) : 403], JSON.stringify(shown)).toEqual(["open", 403]);
}
