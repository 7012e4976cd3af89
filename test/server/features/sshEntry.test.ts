import { createPublicKey, verify } from "node:crypto";
import { parseSshPublicKey } from "@gatehouse-access/sdk/contract";
import { strongestFirst } from "@gatehouse-access/sdk/policy";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { inTransaction } from "../../../server/db/sql/transaction.ts";
import { activeRules } from "../../../server/features/firewall/evaluate.ts";
import { admit } from "../../../server/gateway/logins/admit.ts";
import { DSA_FINGERPRINT, DSA_KEY } from "../../support/dsaKey.ts";
import { expectError } from "../http/answers.ts";
import { withAppAndUser, withInternalApp } from "../http/appOfTest.ts";
import { DENY_RULE, ED25519, enroll, enrollProven, PUBLIC_KEY } from "../http/testApp.ts";

let uid: string;
let deviceToken: string;

const { app, ana } = withAppAndUser();
const internal = withInternalApp(app);
beforeEach(async () => {
  ({ uid, token: deviceToken } = await enrollProven(app, ana.tenant, "00:00:00:00:00:01", {
    hostname: "web-1",
  }));
});

const accept = () => ana.call("acceptDevice", { params: { uid } });
const tagged = (tags: string[]) => ana.call("updateDeviceTags", { params: { uid }, body: { tags } });

describe("createUserToken", () => {
  test("returns a session like a login", async () => {
    const { status, body } = await internal.call("createUserToken", { params: { id: ana.id } });
    expect(status).toBe(200);
    expect(body).toMatchObject({ id: ana.id, user: "ana", tenant: ana.tenant, role: "owner" });
    expect((await app.call("getDevices", { token: body.token })).status).toBe(200);
  });

  test("refuses a user who is unknown or not confirmed", async () => {
    expect((await internal.call("createUserToken", { params: { id: "0".repeat(24) } })).status).toBe(404);
    expect((await internal.call("createUserToken", { params: { id: "ana" } })).status).toBe(404);
    await app.services.db.user.update({ where: { id: ana.id }, data: { status: "not-confirmed" } });
    expect((await internal.call("createUserToken", { params: { id: ana.id } })).status).toBe(403);
  });
});

describe("lookupDevice", () => {
  const lookup = (query: Record<string, string>) => internal.call("lookupDevice", { query });

  test("finds an accepted device by namespace and name, in any case", async () => {
    expect((await lookup({ domain: "lab", name: "web-1" })).status).toBe(404);
    await accept();
    await tagged(["edge"]);
    const { body } = await ana.call("getDevice", { params: { uid } });
    const queries: Record<string, string>[] = [
      { domain: "lab", name: "web-1" },
      { domain: "LAB", name: "Web-1", username: "root", ip_address: "10.0.0.1" },
      { domain: "lab", name: "web-1", username: "", ip_address: "" },
    ];
    for (const query of queries) {
      const answer = await lookup(query);
      expect([answer.status, answer.body]).toEqual([200, body]);
    }
    expect(body).toMatchObject({ uid, tags: ["edge"], status: "accepted", acceptable: false });
  });

  test("finds no device of another namespace or name, and requires a name", async () => {
    await accept();
    await app.user("eve", "elsewhere");
    expect((await lookup({ domain: "elsewhere", name: "web-1" })).status).toBe(404);
    expect((await lookup({ domain: "lab", name: "web" })).status).toBe(404);
    expect((await lookup({ domain: "lab" })).status).toBe(400);
    expect((await lookup({ domain: "lab", name: "web-1", ip_address: "here" })).body.message).toBe(
      "ip_address must be an IPv4 or IPv6 address",
    );
  });
});

describe("offline", () => {
  const online = async () => (await ana.call("getDevice", { params: { uid } })).body.online as boolean;
  const report = () => enrollProven(app, ana.tenant, "00:00:00:00:00:01", { hostname: "web-1" });

  test.each([
    ["a trusted service", () => internal.call("markDeviceOffline", { params: { uid } })],
    ["its own token", () => app.call("offlineDevice", { token: deviceToken, params: { uid } })],
    ["a member", () => ana.call("offlineDevice", { params: { uid } })],
  ])("marks the device for %s, until its next report", async (_, mark) => {
    expect(await online()).toBe(true);
    expect((await mark()).status).toBe(200);
    expect(await online()).toBe(false);
    expect((await mark()).status).toBe(200);
    await report();
    expect(await online()).toBe(true);
  });

  test("refuses a token without a proof of the private key", async () => {
    const { uid, token } = await enroll(app, ana.tenant, "00:00:00:00:00:07");
    expectError(await app.call("offlineDevice", { token, params: { uid } }), 403, /without a proof/);
  });

  test("refuses a device of another namespace, and an unknown device", async () => {
    const eve = await app.user("eve", "elsewhere");
    expect((await eve.call("offlineDevice", { params: { uid } })).status).toBe(404);
    expect(await online()).toBe(true);
    const unknown = { params: { uid: "0".repeat(64) } };
    expect((await internal.call("markDeviceOffline", unknown)).status).toBe(404);
    expect((await internal.call("markDeviceOffline", { params: { uid: "web-1" } })).status).toBe(404);
  });
});

describe("public keys", () => {
  const { fingerprint } = parseSshPublicKey(ED25519);
  const register = (more: object) =>
    ana.call("createPublicKey", {
      body: { ...PUBLIC_KEY, username: "^root$", filter: { hostname: "^web" }, ...more },
    });
  const evaluate = (username: string, device: object = {}) =>
    internal.call("evaluatePublicKey", {
      params: { fingerprint, username },
      body: { name: "web-1", tenant_id: ana.tenant, tags: [], ...device },
    });

  test("exist only in their namespace", async () => {
    const { body: created } = await register({});
    const eve = await app.user("eve", "elsewhere");
    const find = (tenant: string) => internal.call("lookupPublicKey", { params: { fingerprint, tenant } });
    expect((await find(ana.tenant)).body).toEqual(created);
    expect((await find(eve.tenant)).status).toBe(404);
  });

  test("admit no login if an earlier version stored a DSA key", async () => {
    await accept();
    await register({});
    await app.services.db.publicKey.updateMany({
      data: { fingerprint: DSA_FINGERPRINT, data: Buffer.from(`${DSA_KEY}\n`).toString("base64") },
    });
    const params = { fingerprint: DSA_FINGERPRINT };
    const device = { name: "web-1", tenant_id: ana.tenant, tags: [] };
    const evaluated = await internal.call("evaluatePublicKey", {
      params: { ...params, username: "root" },
      body: device,
    });
    expect(evaluated.text).toBe("false");
    const found = await internal.call("lookupPublicKey", { params: { ...params, tenant: ana.tenant } });
    expect(found.status).toBe(404);
    const key = Buffer.from(parseSshPublicKey(DSA_KEY).blob, "base64");
    const question = { device: { uid }, login: "root", address: "192.0.2.1", key, firewall: true };
    expect(await admit(app.services, question)).toMatchObject({
      refused: "type",
      reason: "the key laptop has a type that the service refuses",
    });
  });

  test("admit by login pattern and name pattern", async () => {
    await register({});
    const { status, text, headers } = await evaluate("root");
    expect([status, text]).toEqual([200, "true"]);
    expect(headers.get("content-type")).toContain("application/json");
    expect((await evaluate("admin")).text).toBe("false");
    expect((await evaluate("root", { name: "db-1" })).text).toBe("false");
  });

  test("admit by tags, and not without matching tags", async () => {
    await tagged(["edge", "prod"]);
    await register({ filter: { tags: ["edge"] } });
    expect((await evaluate("root", { tags: ["lab", "edge"] })).body).toBe(true);
    expect((await evaluate("root", { tags: ["prod"] })).body).toBe(false);
    expect((await evaluate("root", { tags: null })).body).toBe(false);
    expect((await evaluate("root", { tags: undefined })).body).toBe(false);
  });

  test("admit no login to another namespace's device, or with an unknown key", async () => {
    expect((await evaluate("root")).body).toBe(false);
    await register({ username: ".*", filter: { hostname: ".*" } });
    const eve = await app.user("eve", "elsewhere");
    expect((await evaluate("root")).body).toBe(true);
    expect((await evaluate("root", { tenant_id: eve.tenant })).body).toBe(false);
    expect((await evaluate("root", { tenant_id: undefined })).status).toBe(400);
  });

  test("use neither a cache of patterns nor a turn for a decision in an unknown namespace", async () => {
    await register({});
    const patterns = vi.spyOn(app.services.patterns, "of");
    const decisions = vi.spyOn(app.services.decisions, "run");
    const { text } = await evaluate("root", { tenant_id: "00000000-0000-4000-8000-000000000000" });
    expect(text).toBe("false");
    expect(patterns).not.toHaveBeenCalled();
    expect(decisions).not.toHaveBeenCalled();
    expect((await evaluate("root")).text).toBe("true");
    expect(patterns).toHaveBeenCalledOnce();
    expect(decisions).toHaveBeenCalledOnce();
  });

  test("accept a whole device in the form of lookupDevice", async () => {
    await accept();
    await register({});
    const { body } = await internal.call("lookupDevice", { query: { domain: "lab", name: "web-1" } });
    expect((await evaluate("root", body)).body).toBe(true);
  });
});

describe("the firewall", () => {
  const rule = (more: object) => ana.call("createFirewallRule", { body: { ...DENY_RULE, ...more } });
  const evaluate = (more: Record<string, string> = {}) =>
    internal.call("evaluateFirewall", {
      query: { domain: "lab", name: "web-1", username: "root", ip_address: "10.0.0.7", ...more },
    });
  beforeEach(async () => {
    await accept();
  });

  test("admits every login without a rule that matches", async () => {
    const { status, text } = await evaluate();
    expect([status, text]).toEqual([200, ""]);
    await rule({ active: false });
    await rule({ username: "^admin$" });
    expect((await evaluate()).status).toBe(200);
  });

  test("denies by the rule of highest priority, and reports its id", async () => {
    await rule({ action: "allow", priority: 1 });
    const { body } = await rule({ priority: 2, source_ip: "^10\\." });
    expectError(await evaluate(), 403, `denied by firewall rule ${body.id}`);
    expect((await evaluate({ ip_address: "192.168.0.1" })).status).toBe(200);
    await rule({ action: "allow", priority: 2 });
    expect((await evaluate()).status).toBe(200);
  });

  test("evaluates thousands of rules", async () => {
    const { tenant: tenantId } = ana;
    const one = { tenantId, action: "deny", active: true, sourceIp: ".*", hostname: ".*" };
    const rules = Array.from({ length: 3000 }, (_, n) => ({
      ...one,
      priority: n % 7,
      username: `^u${n % 300}$`,
    }));
    await app.services.db.firewallRule.createMany({ data: rules });
    const read = await inTransaction(app.services, (tx) => activeRules(tx, tenantId));
    expect(read).toHaveLength(3000);
    const byAge = read.toSorted((a, b) => a.id - b.id);
    expect(read.map(({ id }) => id)).toEqual(strongestFirst(byAge).map(({ id }) => id));
    expect((await evaluate()).status).toBe(200);
    expect((await evaluate({ username: "u7" })).status).toBe(403);
    // The database has ten firewall rules for u7. The rule with the highest priority decides. Among rules with equal
    // priorities, the latest rule decides.
    const where = { tenantId, username: "^u7$" };
    const [, second] = await app.services.db.firewallRule.findMany({
      where,
      orderBy: { id: "asc" },
      take: 2,
    });
    await app.services.db.firewallRule.updateMany({
      where: { tenantId, id: second?.id ?? 0 },
      data: { priority: 9, action: "allow" },
    });
    expect((await evaluate({ username: "u7" })).status).toBe(200);
    const { body } = await rule({ priority: 9, username: "^u7$" });
    expect((await evaluate({ username: "u7" })).body.message).toBe(`denied by firewall rule ${body.id}`);
  });

  test("evaluates the device's tags", async () => {
    await tagged(["edge"]);
    await rule({ filter: { tags: ["edge"] } });
    expect((await evaluate()).status).toBe(403);
    await tagged(["lab"]);
    expect((await evaluate()).status).toBe(200);
  });

  test.each(["::ffff:10.0.0.7", "::FFFF:0a00:0007", "0:0:0:0:0:ffff:10.0.0.7"])(
    "evaluates %s as the IPv4 address",
    async (address) => {
      await rule({ source_ip: "^10\\.0\\.0\\.7$" });
      expect((await evaluate({ ip_address: address })).status).toBe(403);
    },
  );

  test("evaluates IPv6 addresses in one form, without a zone", async () => {
    await rule({ source_ip: "^fe80::a$" });
    for (const address of ["fe80::a", "FE80:0:0:0:0:0:0:A", "fe80::a%eth0"]) {
      expect((await evaluate({ ip_address: address })).status).toBe(403);
    }
    expect((await evaluate({ ip_address: "fe80::b" })).status).toBe(200);
  });

  test("rejects unknown devices and incomplete requests", async () => {
    expect((await evaluate({ name: "db-1" })).status).toBe(404);
    expect((await evaluate({ username: "" })).status).toBe(400);
    expect((await evaluate({ ip_address: "10.0.0" })).status).toBe(400);
  });

  test("ignores another namespace's rules", async () => {
    const eve = await app.user("eve", "elsewhere");
    await eve.call("createFirewallRule", { body: { ...DENY_RULE, priority: 9 } });
    expect((await evaluate()).status).toBe(200);
  });
});

describe("private keys", () => {
  const DATA = '{"username":"root","namespace":"lab"}';
  const sign = (fingerprint: string, more: object = {}, credentials: object = { token: deviceToken }) =>
    app.call("authSshPublicKey", { body: { fingerprint, data: DATA, ...more }, ...credentials });

  test("sign for an accepted device's agent for 60 seconds", async () => {
    const { status, body } = await internal.call("createPrivateKey");
    expect(status).toBe(200);
    const pem = Buffer.from(body.data, "base64").toString();
    const publicKey = createPublicKey(pem);
    expect(pem).toMatch(/^-----BEGIN RSA PRIVATE KEY-----\n/);
    expect(publicKey.asymmetricKeyDetails).toMatchObject({ modulusLength: 4096 });

    expect((await sign(body.fingerprint)).status).toBe(403);
    await accept();
    const { body: signed } = await sign(body.fingerprint);
    const signature = Buffer.from(signed.signature, "base64");
    expect(verify("sha256", Buffer.from(DATA), publicKey, signature)).toBe(true);
    expect(verify("sha256", Buffer.from("else"), publicKey, signature)).toBe(false);
    expect((await sign(body.fingerprint, {}, { token: ana.token })).status).toBe(200);

    app.pass(30);
    expect((await sign(body.fingerprint)).status).toBe(200);
    app.pass(31);
    expect((await sign(body.fingerprint)).status).toBe(404);
  });

  test("have the fingerprint that SSH defines", { tags: ["long"] }, async () => {
    const { body } = await internal.call("createPrivateKey");
    const { e = "", n = "" } = createPublicKey(Buffer.from(body.data, "base64").toString()).export({
      format: "jwk",
    });
    // The RSA public exponent is 65537. The modulus has 4096 bits and begins with a 1 bit, so its SSH encoding begins
    // with a zero byte.
    expect(Buffer.from(e, "base64url").toString("hex")).toBe("010001");
    const blob = Buffer.concat([
      Buffer.from("\x00\x00\x00\x07ssh-rsa\x00\x00\x00\x03\x01\x00\x01\x00\x00\x02\x01\x00", "latin1"),
      Buffer.from(n, "base64url"),
    ]);
    const { fingerprint } = parseSshPublicKey(`ssh-rsa ${blob.toString("base64")}`);
    expect(body.fingerprint).toBe(fingerprint);
  });

  test("are stored encrypted, and deleted at the first creation after they expire", {
    tags: ["long"],
  }, async () => {
    const { body: first } = await internal.call("createPrivateKey");
    const pem = Buffer.from(first.data, "base64").toString();
    const rows = await app.services.db.privateKey.findMany();
    expect(rows.map((row) => row.fingerprint)).toEqual([first.fingerprint]);
    expect(JSON.stringify(rows)).not.toContain("PRIVATE KEY");
    expect(JSON.stringify(rows)).not.toContain(pem.split("\n")[1]);
    app.pass(61);
    const { body: second } = await internal.call("createPrivateKey");
    const kept = await app.services.db.privateKey.findMany({ select: { fingerprint: true } });
    expect(kept).toEqual([{ fingerprint: second.fingerprint }]);
    expect(second.fingerprint).not.toBe(first.fingerprint);
  });

  test("sign no text that could be an SSH login", async () => {
    await accept();
    const { body } = await internal.call("createPrivateKey");
    for (const data of ["\u0000\u0000\u0000 ", "line\nline", "tab\t", "delete\u007f", "c1\u0085"]) {
      expectError(await sign(body.fingerprint, { data }), 400, "data must not contain control characters");
    }
    expect((await sign(body.fingerprint, { data: "" })).status).toBe(400);
    expect((await sign(body.fingerprint, { data: "für Jürgen" })).status).toBe(200);
    expect((await sign(Array(16).fill("00").join(":"))).status).toBe(404);
  });
});
