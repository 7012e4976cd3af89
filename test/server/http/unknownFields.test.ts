import { beforeAll, describe, expect, test } from "vitest";
import { expectError } from "./answers.ts";
import { withSharedApp } from "./appOfTest.ts";
import { DENY_RULE, PUBLIC_KEY, type TestUser } from "./testApp.ts";

const app = withSharedApp({ edition: "enterprise" });
let ana: TestUser;
beforeAll(async () => {
  ana = await app.user("ana", "lab");
});

const END = "2999-01-01T00:00:00Z";
const send = (method: string, path: string, body: object) =>
  app.send(method, path.replace("{tenant}", ana.tenant), {
    headers: { authorization: `Bearer ${ana.token}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
const MEMBERS = "/api/namespaces/{tenant}/members";
const member = { email: "mia@example.org", role: "observer" };

describe("a field that the service would ignore, and that the client probably means, is refused", () => {
  test.each([
    [
      "POST",
      MEMBERS,
      { ...member, accessExpiresAt: END },
      "accessExpiresAt is an unknown field; use access_expires_at",
    ],
    [
      "POST",
      `${MEMBERS}/invites`,
      { ...member, accessExpiresAt: END },
      "accessExpiresAt is an unknown field; use access_expires_at",
    ],
    [
      "POST",
      "/api/sshkeys/public-keys",
      { ...PUBLIC_KEY, expiresAt: END },
      "expiresAt is an unknown field; use expires_at",
    ],
    [
      "POST",
      "/api/sshkeys/public-keys",
      { ...PUBLIC_KEY, "Expires-At": END },
      "Expires-At is an unknown field; use expires_at",
    ],
    [
      "POST",
      "/api/firewall/rules",
      { ...DENY_RULE, ExpiresAt: END },
      "ExpiresAt is an unknown field; use expires_at",
    ],
    [
      "PUT",
      "/api/namespaces/{tenant}",
      { settings: { sessionMaxMinutes: 5 } },
      "settings.sessionMaxMinutes is an unknown field; use settings.session_max_minutes",
    ],
    [
      "POST",
      "/api/namespaces",
      { name: "other", settings: { session_max_minutes: 5 } },
      "settings.session_max_minutes is an unknown field; the operation has no such field",
    ],
  ])("%s %s %j", async (method, path, body, message) => {
    expectError(await send(method, path, body), 400, message);
  });

  test("and nothing is created", async () => {
    expect((await ana.call("getPublicKeys")).body).toEqual([]);
    expect((await ana.call("getFirewallRules")).body).toEqual([]);
    const { body } = await ana.call("getNamespaces");
    expect(body.map(({ name }: { name: string }) => name)).toEqual(["lab"]);
    expect(body[0].members).toHaveLength(1);
  });

  test("an operation of this service refuses every unknown field", async () => {
    const workload = {
      name: "deploy",
      issuer: "https://id.example.org",
      audience: "a",
      claims: { sub: "x" },
      role: "observer",
      expires_at: END,
    };
    expectError(await send("POST", "/api/trusted-workloads", workload), 400, /expires_at/);
  });
});

test("other unknown fields have no effect, as on other services of the API", async () => {
  const extra = { created_at: END, tenant_id: "x", fingerprint: "x", id: 7, expiry: END };
  expect((await send("POST", "/api/sshkeys/public-keys", { ...PUBLIC_KEY, ...extra })).status).toBe(200);
  const settings = { session_record: true, color: "blue" };
  expect((await send("PUT", "/api/namespaces/{tenant}", { settings, devices_count: 3 })).status).toBe(200);
});
