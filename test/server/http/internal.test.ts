import {
  type InternalOperations,
  internalOperations,
  type Operation,
  publicOperations,
} from "@gatehouse-access/sdk/contract";
import { beforeAll, describe, expect, test } from "vitest";
import { shared } from "../../support/shared.ts";
import { expectError } from "./answers.ts";
import { testApp, withSharedApp } from "./appOfTest.ts";
import { INTERNAL_TOKEN, startInternalApp } from "./internalTestApp.ts";
import { makeWorkload } from "./matrix/fixture.ts";
import { enroll, pathOf, type TestUser } from "./testApp.ts";

let owner: TestUser;
let apiKey: string;

const app = withSharedApp();
const internal = shared(() => startInternalApp(app));

beforeAll(async () => {
  owner = await app.user("owner", "lab");
  const body = { name: "robot", expires_at: 30, role: "operator" };
  apiKey = (await owner.call("createApiKey", { body })).body.id;
});

/** Returns a path of the operation. Its parameters are well-formed, but refer to objects that do not exist. */
function missing(operation: Operation): string {
  const values: Record<string, string> = {
    id: "0".repeat(24),
    uid: "0".repeat(64),
    fingerprint: Array(16).fill("00").join(":"),
    tenant: "00000000-0000-4000-8000-000000000000",
  };
  const names = Object.keys(operation.params.shape);
  return pathOf(operation, {
    params: Object.fromEntries(names.map((name) => [name, values[name] ?? "missing"])),
  });
}

/** A path that both listeners serve, each with its own credentials (rules, section 7). */
const servedByBoth = publicOperations.offlineDevice.path;

describe.each(Object.keys(internalOperations) as (keyof InternalOperations)[])("%s", (id) => {
  const operation: Operation = internalOperations[id];

  test("requires the internal token, whatever other credentials are sent", async () => {
    const wrong: Record<string, string>[] = [
      {},
      { "X-Internal-Token": "" },
      { "X-Internal-Token": INTERNAL_TOKEN.slice(0, -1) },
      { "X-Internal-Token": `${INTERNAL_TOKEN}1` },
      { "X-Internal-Token": INTERNAL_TOKEN.toUpperCase() },
      { "X-Internal-Token": `${INTERNAL_TOKEN}, ${INTERNAL_TOKEN}` },
      { authorization: `Bearer ${INTERNAL_TOKEN}` },
      { authorization: `Bearer ${owner.token}` },
      { "x-api-key": INTERNAL_TOKEN },
      { "x-api-key": apiKey },
    ];
    for (const headers of wrong) {
      expectError(
        await internal.send(operation.method, missing(operation), { headers }),
        403,
        "X-Internal-Token is missing or wrong",
        { label: JSON.stringify(headers) },
      );
    }
  });

  test("is not served on the public listener", async () => {
    const headers = { "X-Internal-Token": INTERNAL_TOKEN };
    const { status } = await app.send(operation.method, missing(operation), { headers });
    expect(status).toBe(operation.path === servedByBoth ? 401 : 404);
  });
});

test("the internal listener serves no public operation", async () => {
  for (const operation of Object.values<Operation>(publicOperations)) {
    if (operation.path === servedByBoth) continue;
    for (const path of [operation.path, ...operation.aliases]) {
      const { status } = await internal.send(operation.method, missing({ ...operation, path }));
      expect(status, `${operation.method} ${path}`).toBe(404);
    }
  }
  for (const path of ["/openapi.json", "/healthz", "/readyz"]) {
    expect((await internal.send("GET", path)).status).toBe(404);
  }
});

test("without the internal token, unknown paths get the same response as other paths", async () => {
  expect((await internal.send("GET", "/nowhere", { headers: {} })).status).toBe(403);
  expect((await internal.send("GET", "/nowhere")).status).toBe(404);
});

test("the internal listener of the community edition does not evaluate the firewall", async () => {
  const community = await testApp({ edition: "community" });
  const listener = await startInternalApp(community);
  const { path } = internalOperations.evaluateFirewall;
  expect((await listener.send("GET", path)).status).toBe(404);
  expect((await listener.send("GET", internalOperations.lookupDevice.path)).status).toBe(400);
  await listener.stop();
});

describe("authRequest", () => {
  const NAMES = ["x-tenant-id", "x-role", "x-id", "x-username", "x-api-key", "x-device-uid", "x-workload-id"];
  const identityOf = (headers: Headers) =>
    Object.fromEntries(NAMES.flatMap((name) => (headers.has(name) ? [[name, headers.get(name)]] : [])));

  test("identifies a user with a namespace, and a user without one", async () => {
    const { status, headers, text } = await internal.call("authRequest", { token: owner.token });
    expect([status, text]).toEqual([200, ""]);
    expect(identityOf(headers)).toEqual({
      "x-tenant-id": owner.tenant,
      "x-role": "owner",
      "x-id": owner.id,
      "x-username": "owner",
    });
    const newcomer = await app.user("newcomer");
    const without = await internal.call("authRequest", { token: newcomer.token });
    expect(identityOf(without.headers)).toEqual({ "x-id": newcomer.id, "x-username": "newcomer" });
  });

  test("identifies an API key without revealing it", async () => {
    const { status, headers, text } = await internal.call("authRequest", { apiKey });
    expect(status).toBe(200);
    expect(identityOf(headers)).toEqual({
      "x-tenant-id": owner.tenant,
      "x-role": "operator",
      "x-api-key": "true",
    });
    expect(JSON.stringify([...headers]) + text).not.toContain(apiKey);
  });

  test("identifies a workload by its id and role", async () => {
    const { id, token } = await makeWorkload(app, owner, "deploy", "operator");
    const { headers } = await internal.call("authRequest", { token });
    expect(identityOf(headers)).toEqual({
      "x-tenant-id": owner.tenant,
      "x-role": "operator",
      "x-workload-id": id,
    });
  });

  test("identifies a device, which has no role", async () => {
    const { uid, token } = await enroll(app, owner.tenant, "00:00:00:00:00:01");
    const { headers } = await internal.call("authRequest", { token });
    expect(identityOf(headers)).toEqual({ "x-tenant-id": owner.tenant, "x-device-uid": uid });
  });

  test("ignores request headers with the names of identity headers", async () => {
    const claimed = {
      "X-Tenant-ID": "00000000-0000-4000-8000-000000000000",
      "X-Role": "owner",
      "X-ID": "f".repeat(24),
      "X-Username": "root",
      "X-Device-UID": "f".repeat(64),
      "X-Workload-ID": "f".repeat(24),
    };
    const { uid, token } = await enroll(app, owner.tenant, "00:00:00:00:00:02");
    const device = await internal.call("authRequest", { token, headers: claimed });
    expect(identityOf(device.headers)).toEqual({ "x-tenant-id": owner.tenant, "x-device-uid": uid });
    expect((await internal.call("authRequest", { headers: claimed })).status).toBe(401);

    // On the public listener, forged headers of the edge proxy neither authenticate a request nor change the user's
    // role.
    const body = { name: "renamed" };
    const rename = (options: object) => app.call("renameDevice", { params: { uid }, body, ...options });
    expect((await rename({ headers: { ...claimed, "X-Tenant-ID": owner.tenant } })).status).toBe(401);
    const outsider = await app.user("outsider", "elsewhere");
    const headers = { ...claimed, "X-Tenant-ID": owner.tenant };
    expect((await rename({ token: outsider.token, headers })).status).toBe(404);
    expect((await outsider.call("getDevices", { headers })).body).toEqual([]);
  });

  test.each([
    ["no credentials", {}],
    ["a malformed token", { token: "garbage" }],
    ["an unknown key", { apiKey: "c2a1f0de-7a51-4f2e-9c0b-2f7d5b8e4a10" }],
    ["the internal token", { token: INTERNAL_TOKEN }],
  ])("returns 401 and no identity for %s", async (_, credentials) => {
    const { status, headers } = await internal.call("authRequest", credentials);
    expect(status).toBe(401);
    expect(identityOf(headers)).toEqual({});
  });

  test("rejects an unknown key even next to a valid token", async () => {
    const options = { token: owner.token, apiKey: "c2a1f0de-7a51-4f2e-9c0b-2f7d5b8e4a10" };
    expect((await internal.call("authRequest", options)).status).toBe(401);
  });
});
