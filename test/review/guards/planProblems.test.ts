import { beforeEach, describe, expect, test } from "vitest";
import type { Step } from "../../../provider/engine/index.ts";
import { planProblems } from "../../../provider/review/guards/planProblems.ts";
import type { Connection } from "../../../provider/service/connection.ts";
import { sshKeyLine } from "../../provider/support/programs.ts";
import { withAppAndUser } from "../../server/http/appOfTest.ts";
import { enroll } from "../../server/http/testApp.ts";
import { connectionOf } from "../support/connectionOf.ts";
import { creation, planOf, step } from "../support/steps.ts";

const { app, ana } = withAppAndUser();
const ABSENT = "00000000-0000-4000-8000-000000000009";

let connection: Connection;
beforeEach(() => {
  connection = connectionOf(app.url, ana);
  return () => connection.client.close();
});

/** Returns the problems of a plan in the namespace of the user `ana`, as `kind: text`. */
async function problemsOf(...steps: readonly Step[]) {
  const home = { tenant: ana.tenant, unsettled: undefined };
  const plan = { ...planOf(...steps), project: "fleet", stack: "prod" };
  const problems = await planProblems(connection, plan, home);
  return problems.map(({ about, text }) => `${about}: ${text}`);
}

const accepted = (device: string) => creation("Device", device, { device, status: "accepted" });
const pending = async (hostname: string, mac: string, more: object = {}) =>
  (await enroll(app, ana.tenant, mac, { hostname, ...more })).uid as string;
const accept = (uid: string) => ana.call("acceptDevice", { params: { uid } });

describe("the quota of devices", () => {
  beforeEach(async () => {
    await app.services.db.namespace.update({ where: { tenantId: ana.tenant }, data: { maxDevices: 2 } });
    await accept(await pending("web-1", "02:00:00:00:00:01"));
    await pending("web-2", "02:00:00:00:00:02");
    await pending("web-3", "02:00:00:00:00:03");
  });

  test("allows a plan up to the quota", async () => {
    expect(await problemsOf(accepted("web-2"))).toEqual([]);
    expect(await problemsOf(accepted("web-1"), accepted("web-2"))).toEqual([]);
  });

  test("blocks a plan beyond the quota", async () => {
    expect(await problemsOf(accepted("web-2"), accepted("web-3"))).toEqual([
      `quota: Device "web-2", Device "web-3": the plan accepts 2 devices, and the namespace ${ana.tenant} has 1 of 2 left; remove devices, or raise the quota`,
    ]);
  });

  test("counts no device that stays pending, and no machine that enrolled again", async () => {
    expect(await problemsOf(accepted("web-2"), creation("Device", "three", { device: "web-3" }))).toEqual([]);
    await accept((await app.services.db.device.findFirstOrThrow({ where: { name: "web-2" } })).uid);
    const again = await pending("web-again", "02:00:00:00:00:02", { public_key: "a new key" });
    await connection.forget();
    const plan = creation("Device", "again", { device: again, status: "accepted" });
    expect((await problemsOf(plan)).filter((text) => text.startsWith("quota"))).toEqual([]);
  });

  test("has no effect without a limit", async () => {
    await app.services.db.namespace.update({ where: { tenantId: ana.tenant }, data: { maxDevices: -1 } });
    expect(await problemsOf(accepted("web-2"), accepted("web-3"))).toEqual([]);
  });
});

describe("the quota of namespaces", () => {
  beforeEach(async () => {
    await app.services.db.user.update({ where: { id: ana.id }, data: { maxNamespaces: 2 } });
  });
  const namespace = (name: string, more = {}) => creation("Namespace", name, { name, ...more });

  test("allows a plan up to the quota, and the adoption of an own namespace", async () => {
    expect(await problemsOf(namespace("second"))).toEqual([]);
    expect(await problemsOf(namespace("second"), namespace("lab", { adopt: true }))).toEqual([]);
  });

  test("blocks a plan beyond the quota", async () => {
    expect(await problemsOf(namespace("second"), namespace("third"))).toEqual([
      'quota: Namespace "second", Namespace "third": the quota of the user is 2 namespaces, and the user owns 1; delete a namespace, or ask an operator to raise the quota',
    ]);
  });

  test("does not count namespaces of other owners", async () => {
    const ben = await app.user("ben", "shared");
    await ben.call("inviteMember", {
      params: { tenant: ben.tenant },
      body: { email: ana.email, role: "administrator" },
    });
    expect(await problemsOf(namespace("second"))).toEqual([]);
  });
});

const LINES = new Map(["a", "b", "c", "d", "e", "f", "x"].map((name) => [name, sshKeyLine()]));
const keyInputs = (name: string, filter: object = { hostname: ".*" }) => ({
  name,
  data: LINES.get(name) ?? "",
  username: "^root$",
  filter: filter as { hostname: string },
});

describe("a plan with a missing object", () => {
  test("reports a missing device of a new resource, unless the plan gives a device this name", async () => {
    const uid = await pending("web-1", "02:00:00:00:00:01");
    const named = creation("Device", "x", { device: uid, name: "db-1" });
    const tags = creation("DeviceTags", "x", { device: "db-1", tags: ["prod"] });
    expect(await problemsOf(tags)).toEqual([
      `device: DeviceTags "x": the namespace ${ana.tenant} has no device "db-1"; enroll the device first, or set another uid, MAC address or name`,
    ]);
    expect(await problemsOf(tags, named)).toEqual([]);
  });

  test("reports a missing tag of a filter, unless a device gets the tag in the plan", async () => {
    await accept(await pending("web-1", "02:00:00:00:00:01"));
    const key = creation("PublicKey", "x", keyInputs("x", { tags: ["prod"] }));
    const tags = creation("DeviceTags", "x", { device: "web-1", tags: ["prod"] });
    expect(await problemsOf(key)).toEqual([
      `tag: PublicKey "x": the namespace ${ana.tenant} has no tag "prod"; add the tag to a device first, or correct its spelling`,
    ]);
    expect(await problemsOf(key, tags)).toEqual([]);
    await ana.call("createDeviceTag", {
      params: { uid: (await app.services.db.device.findFirstOrThrow()).uid },
      body: { tag: "prod" },
    });
    await connection.forget();
    expect(await problemsOf(key)).toEqual([]);
  });

  test("reports a missing namespace, and a namespace of other members", async () => {
    const { tenant: others } = await app.user("ben", "others");
    const inTenant = (tenant: string) => creation("PublicKey", "x", { ...keyInputs("x"), tenant });
    expect(await problemsOf(inTenant(ABSENT))).toEqual([
      `namespace: PublicKey "x": the namespace ${ABSENT} does not exist; check the input tenant or GATEHOUSE_TENANT`,
    ]);
    expect(await problemsOf(inTenant(others))).toEqual([
      `namespace: PublicKey "x": the owner of the credential is not a member of the namespace ${others}; use another credential or another namespace`,
    ]);
  });

  test("reports resources without a namespace", async () => {
    const home = { tenant: undefined, unsettled: new Error("set GATEHOUSE_TENANT") };
    const plan = planOf(creation("PublicKey", "x", keyInputs("x")));
    expect(await planProblems(connection, plan, home)).toEqual([
      { about: "namespace", text: 'PublicKey "x": set GATEHOUSE_TENANT' },
    ]);
  });
});

describe("a plan that meets objects of other actors", () => {
  async function keyOnService(name: string) {
    const { data, ...fields } = keyInputs(name);
    const body = { ...fields, data: Buffer.from(data).toString("base64") };
    const { fingerprint } = (await ana.call("createPublicKey", { body })).body;
    return { fingerprint, fields };
  }

  test("reports an existing object that the plan creates without adopt", async () => {
    await keyOnService("x");
    await keyOnService("a");
    expect(await problemsOf(creation("PublicKey", "x", keyInputs("x")))).toEqual([
      expect.stringMatching(/^existing: PublicKey "x": .* already exists .* and equals the declaration/),
    ]);
    expect(await problemsOf(creation("PublicKey", "x", { ...keyInputs("x"), adopt: true }))).toEqual([]);
  });

  test("reports no existing object that an earlier run created for the same resource", async () => {
    const { fingerprint } = await keyOnService("x");
    const declaredBy = (resource: string, stack = "prod") =>
      app.services.db.publicKey.updateMany({
        where: { fingerprint },
        data: {
          declaredBy: JSON.stringify({ project: "fleet", stack, resource, at: "2026-11-01T00:00:00Z" }),
        },
      });
    const plan = creation("PublicKey", "x", keyInputs("x"));
    for (const [resource, stack, problems] of [
      ["x", "prod", 0],
      ["y", "prod", 1],
      ["x", "test", 1],
    ] as const) {
      await declaredBy(resource, stack);
      await connection.forget();
      expect(await problemsOf(plan)).toHaveLength(problems);
    }
  });

  test("reports an existing object also among many new objects", async () => {
    await keyOnService("x");
    const names = ["a", "b", "c", "d", "e", "f", "x"];
    const plan = names.map((name) => creation("PublicKey", name, keyInputs(name)));
    expect(await problemsOf(...plan)).toEqual([expect.stringMatching(/^existing: PublicKey "x": /)]);
  });

  test("reports an object that was changed out of band and that the plan updates", async () => {
    const { fingerprint, fields } = await keyOnService("x");
    const inputs = keyInputs("x");
    const updated = (login: string): Step => ({
      ...step("update", "PublicKey", "x", {
        id: `${ana.tenant}/${fingerprint}`,
        before: { inputs, outputs: { ...inputs, tenant: ana.tenant, fingerprint } },
        after: { ...inputs, username: login },
      }),
      fields: [{ path: "username", old: inputs.username, new: login }],
    });
    expect(await problemsOf(updated("^deploy$"))).toEqual([]);
    await ana.call("updatePublicKey", { params: { fingerprint }, body: { ...fields, username: ".*" } });
    await connection.forget();
    expect(await problemsOf(updated("^deploy$"))).toEqual([
      expect.stringMatching(/^changed: PublicKey "x": .*username/),
    ]);
  });

  test("reports contradictory rules of one priority", async () => {
    const rule = (action: string, priority: number) => ({
      action,
      priority,
      active: true,
      sourceIp: ".*",
      username: ".*",
      filter: { hostname: ".*" },
    });
    await accept(await pending("web-1", "02:00:00:00:00:01"));
    const body = { action: "deny", priority: 7, active: true, source_ip: ".*", username: ".*" };
    await ana.call("createFirewallRule", { body: { ...body, filter: { hostname: ".*" } } });
    expect(await problemsOf(creation("FirewallRule", "x", rule("allow", 8)))).toEqual([]);
    expect(await problemsOf(creation("FirewallRule", "x", rule("allow", 7)))).toEqual([
      expect.stringMatching(/^order: .*priority 7/),
    ]);
  });
});

test("a plan of an operator reports missing permissions with the titles of the resources", async () => {
  const ben = await app.user("ben");
  await ana.call("inviteMember", {
    params: { tenant: ana.tenant },
    body: { email: ben.email, role: "operator" },
  });
  const own = connectionOf(app.url, { username: "ben", tenant: ana.tenant });
  const home = { tenant: ana.tenant, unsettled: undefined };
  const plan = planOf(creation("PublicKey", "x", keyInputs("x")));
  try {
    expect(await planProblems(own, plan, home)).toEqual([
      {
        about: "permissions",
        text: 'PublicKey "x": permission denied: the role administrator is required, and the credential has the role operator (createPublicKey)',
      },
    ]);
  } finally {
    await own.client.close();
  }
});
