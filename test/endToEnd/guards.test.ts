/**
 * Slow: each test runs several commands. Faster tests in test/review/guards cover the guards themselves.
 *
 * @module-tag long
 */
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import type { DriftReport } from "../../provider/drift/driftReport.ts";
import { login } from "../../provider/helpers/patterns.ts";
import type { Review } from "../../provider/review/report/review.ts";
import { changeKey, createKey, deleteKey, memberId, startFleet } from "../support/fleet.ts";
import { testFolder } from "../support/folder.ts";
import type { Stack } from "../support/gatehouse.ts";
import { firewallRule, keyData, type Policy, policyEnv, publicKey } from "../support/policy.ts";
import { sharedProgram } from "../support/policyProgram.ts";
import { startService } from "../support/service.ts";
import { sharedFleet } from "../support/sharedFleet.ts";

const key = (name: string, filter: Record<string, unknown> = { hostname: ".*" }, more: object = {}) =>
  publicKey(name, "^root$", filter, { ...more });
const rule = (action: "allow" | "deny", priority: number, more: object = {}) =>
  firewallRule(action, priority, { username: "^root$", ...more });
const tags = (device: string, ...names: string[]) => ({
  type: "DeviceTags",
  args: { device, tags: names },
});

describe("guards fail closed", { timeout: 120_000 }, () => {
  const fleet = sharedFleet(["dave"]);
  const program = sharedProgram();
  let web: string;

  beforeAll(async () => {
    web = await fleet.enroll("web-01");
  });
  // Deletes a test's objects directly on the service, without the stack. This is safe, since each test has its own
  // stack.
  afterEach(() => fleet.clear());

  const newStack = (name?: string) => program.stack({ env: fleet.env, ...(name !== undefined && { name }) });
  const up = (stack: Stack, policy: Policy, ...flags: readonly string[]) => stack.apply(policy, ...flags);
  const text = async (stack: Stack, args: readonly string[], policy: Policy) => {
    const { code, stdout, stderr } = await stack.run(args, policyEnv(policy));
    return { code, text: stdout + stderr };
  };
  const review = async (stack: Stack, policy: Policy) => {
    const { code, stdout } = await stack.run(["review", "--json"], policyEnv(policy));
    return { code, ...(JSON.parse(stdout) as Review) };
  };
  const drift = async (stack: Stack, policy: Policy, args: readonly string[] = []) => {
    const { code, stdout } = await stack.run(["drift", "--json", ...args], policyEnv(policy));
    return { code, ...(JSON.parse(stdout) as DriftReport) };
  };
  /** Runs a repair. */
  const repair = (stack: Stack, policy: Policy, ...more: readonly string[]) =>
    text(stack, ["drift", "--repair", "--yes", ...more], policy);
  /** Removes a member that a test has invited, when the test ends. */
  const removeAtEnd = (email: string) =>
    onTestFinished(async () => {
      const uid = await memberId(fleet, email).catch(() => undefined);
      if (uid) await fleet.client.removeMember({ params: { tenant: fleet.tenant, uid } });
    });
  const keys = async () =>
    (await fleet.client.getPublicKeys()).map(({ name, username }) => `${name} ${username}`).sort();

  it("the service refuses a run without a review that demotes its own user, except with allowLockout", async () => {
    const { client, tenant } = fleet;
    const email = "dave@example.com";
    await client.inviteMember({ params: { tenant }, body: { email, role: "administrator" } });
    const dave = async () => {
      const { members } = await client.getNamespace({ params: { tenant } });
      return members.find((member) => member.email === email);
    };
    removeAtEnd(email);
    const credential = { GATEHOUSE_USERNAME: "dave", GATEHOUSE_PASSWORD: "correct-horse" };
    const stack = program.stack({ env: { ...fleet.env, GATEHOUSE_TENANT: tenant, ...credential } });
    const member = (role: string, more: object = {}) => ({
      dave: { type: "Member", args: { email, role, adopt: true, ...more } },
    });
    await up(stack, member("administrator"));
    const run = ["up", "--yes", "--skip-preview"];
    const refused = await text(stack, run, member("observer"));
    expect(refused.code).toBe(1);
    expect(refused.text.replaceAll(/\s+/g, " ")).toContain(
      "Member dave: allowLockout: The change would remove permissions of the caller. Use the credential of another administrator, or set allowLockout: true. [lockout]",
    );
    expect(await dave()).toMatchObject({ role: "administrator" });
    const allowed = await text(stack, run, member("observer", { allowLockout: true }));
    expect([allowed.code, await dave()]).toEqual([0, expect.objectContaining({ role: "observer" })]);
  });

  describe("a repair", () => {
    it("neither removes nor changes objects of another stack, except with --adopt-from", async () => {
      const [mine, theirs] = [newStack("mine"), newStack("theirs")];
      await up(mine, { ana: key("ana") });
      const overwritten = key("ana", { hostname: "^web" }, { username: ".*", adopt: "overwrite" });
      await up(theirs, { bob: key("bob"), ana: overwritten });
      const left = await repair(mine, { ana: key("ana") });
      expect(left.code).toBe(2);
      expect(left.text).toContain("PublicKey bob");
      expect(left.text).toMatch(
        /stays: bob of commonjs-program\/theirs declared this object last; allow the change with --adopt-from/,
      );
      expect(left.text).toMatch(/stays: ana of commonjs-program\/theirs declared this object last/);
      expect(await keys()).toEqual(["ana .*", "bob ^root$"]);
      const adopting = ["--adopt-from", "commonjs-program/theirs"];
      expect(await repair(mine, { ana: key("ana") }, ...adopting)).toMatchObject({ code: 0 });
      expect(await keys()).toEqual(["ana ^root$"]);
    });

    it("keeps manual tags of a device that another stack has adopted since", async () => {
      const [mine, theirs] = [newStack(), newStack()];
      await up(mine, {});
      await fleet.client.updateDeviceTags({ params: { uid: web }, body: { tags: ["edge"] } });
      await up(theirs, { tags: tags("web-01", "edge") });
      expect(await repair(mine, {})).toMatchObject({
        code: 2,
        text: expect.stringMatching(/stays: tags of .* declared this object last/),
      });
      expect(await fleet.client.getDevice({ params: { uid: web } })).toMatchObject({ tags: ["edge"] });
      expect(await text(theirs, ["destroy", "--yes"], {})).toMatchObject({ code: 0 });
    });

    it("removes neither the running user nor the API key of the run", async () => {
      const stack = newStack();
      const policy = { ana: key("ana") };
      await up(stack, policy);
      const { client, tenant } = fleet;
      const repairAs = (credential: Record<string, string>) => {
        const { GATEHOUSE_USERNAME: _username, GATEHOUSE_PASSWORD: _password, ...rest } = fleet.env;
        const own = program.stack({ name: stack.name, env: { ...rest, ...credential } });
        return repair(own, policy);
      };
      const apiKeys = async () => (await client.listApiKeys()).map(({ name }) => name);
      const members = async () =>
        (await client.getNamespace({ params: { tenant } })).members.map(({ email }) => email);

      const apiKey = { name: "by-hand", expiresAt: -1, role: "administrator" } as const;
      const { id } = await client.createApiKey({ body: apiKey });
      const byKey = await repairAs({ GATEHOUSE_API_KEY: id });
      expect([byKey.code, byKey.text]).toEqual([
        2,
        expect.stringMatching(/ApiKey by-hand .*stays: this run may use this API key/),
      ]);
      expect(await apiKeys()).toEqual(["by-hand"]);

      const dave = { email: "dave@example.com", role: "administrator" } as const;
      await client.inviteMember({ params: { tenant }, body: dave });
      removeAtEnd(dave.email);
      const byUser = await repairAs({ GATEHOUSE_USERNAME: "dave", GATEHOUSE_PASSWORD: "correct-horse" });
      expect([byUser.code, byUser.text]).toEqual([
        2,
        expect.stringMatching(/Member dave@example\.com .*stays: this user runs the command/),
      ]);
      expect(await apiKeys()).toEqual([]);
      expect(await members()).toContain(dave.email);

      expect(await repair(stack, policy)).toMatchObject({ code: 0 });
      expect(await members()).not.toContain(dave.email);
    });

    it("skips a drifted object that the program changes too", async () => {
      const stack = newStack();
      await up(stack, { allow: rule("allow", 5), deny: rule("deny", 6) });
      for (const { id, active: _active, ...body } of await fleet.client.getFirewallRules())
        await fleet.client.updateFirewallRule({ params: { id }, body: { ...body, active: false } });
      const changed = { allow: rule("allow", 5), deny: rule("deny", 7) };
      expect(await repair(stack, changed)).toMatchObject({
        code: 2,
        text: expect.stringMatching(/FirewallRule deny stays: the program declares another change/),
      });
      const live = async () =>
        (await fleet.client.getFirewallRules())
          .map(({ action, priority, active }) => `${action} ${priority} ${active}`)
          .sort();
      expect(await live()).toEqual(["allow 5 true", "deny 6 false"]);
      await up(stack, changed, "--refresh");
      expect(await live()).toEqual(["allow 5 true", "deny 7 true"]);
    });

    it("rejects an order of rules that it cannot restore", async () => {
      const stack = newStack();
      const both = { allow: rule("allow", 5), deny: rule("deny", 6) };
      await up(stack, both);
      // A user manually gives both rules the same priority, and removes the rule that was created first.
      for (const { id, action, ...body } of await fleet.client.getFirewallRules())
        if (action === "allow") await fleet.client.deleteFirewallRule({ params: { id } });
        else
          await fleet.client.updateFirewallRule({ params: { id }, body: { ...body, action, priority: 5 } });
      const equal = { allow: rule("allow", 5), deny: rule("deny", 5) };
      const refused = await repair(stack, equal);
      expect(refused.code).toBe(1);
      expect(refused.text).toMatch(
        /have the same priority 5; one rule allows and the other rule denies logins on web-01/,
      );
      expect((await fleet.client.getFirewallRules()).map(({ action }) => action)).toEqual(["deny"]);
    });
  });

  it("preview, up and review block on contradicting rules of one priority", async () => {
    const stack = newStack();
    const equal = { ana: key("ana"), allow: rule("allow", 5), deny: rule("deny", 5) };
    // A blocked first run creates no stack.
    await up(stack, {});
    const blocked = await text(stack, ["up", "--yes"], equal);
    expect(blocked).toMatchObject({
      code: 1,
      text: expect.stringContaining("give the rules different priorities"),
    });
    expect(await keys()).toEqual([]);
    const { code, namespaces } = await review(stack, equal);
    expect([code, namespaces[0]?.notEvaluated]).toEqual([
      2,
      [expect.stringContaining("unknown before the apply")],
    ]);
    // Rules that never match the same login do not contradict each other.
    const apart = { ...equal, deny: rule("deny", 5, { username: "^guest$" }) };
    expect(await text(stack, ["preview"], apart)).toMatchObject({ code: 0 });
    await up(stack, { ana: key("ana"), allow: rule("allow", 5) });
    expect(await text(stack, ["preview"], equal)).toMatchObject({ code: 1 });
  });

  it("an accepted device takes precedence over a pending device with the same name", async () => {
    const stack = newStack();
    const impostor = await fleet.enrollPending("vault-01");
    const policy = { vault: tags("vault-01", "vault"), bob: key("bob", { tags: ["vault"] }) };
    const first = await text(stack, ["up", "--yes", "--skip-preview"], policy);
    expect(first.text).toContain('DeviceTags "vault": "vault-01" matches a device that is not accepted yet');
    const real = await fleet.enroll("vault-01");
    expect(await drift(stack, policy)).toMatchObject({ code: 2, drifted: [{ name: "vault" }] });
    await stack.result(["up", "--refresh", "--yes", "--skip-preview"], policyEnv(policy));
    const tagsOf = async (uid: string) => (await fleet.client.getDevice({ params: { uid } })).tags;
    expect([await tagsOf(real), await tagsOf(impostor)]).toEqual([["vault"], []]);
    await fleet.client.deleteDevice({ params: { uid: impostor } });
  });

  it("the tags of a device that the same run accepts and renames cause no warning, and drift finds nothing", async () => {
    const stack = newStack();
    const edge = await fleet.enrollPending("edge-01");
    const { mac } = (await fleet.client.getDevice({ params: { uid: edge } })).identity;
    const device = { $ref: "edge.mac" };
    const policy = (name: string) => ({
      ana: key("ana", { hostname: "^edge-03$" }),
      edge: { type: "Device", args: { device: mac, name, status: "accepted" } },
      one: { type: "DeviceTagAttachment", args: { device, tag: "one" } },
      two: { type: "DeviceTagAttachment", args: { device, tag: "two" } },
    });
    const first = await text(stack, ["up", "--yes", "--skip-preview"], policy("edge-02"));
    expect([first.code, first.text]).toEqual([0, expect.not.stringContaining("not accepted yet")]);
    const stored = () => stack.stateText("commonjs-program").match(/"device(Name|Status)":"[^"]*"/g);
    const accepted = (name: string) => [`"deviceName":"${name}"`, `"deviceStatus":"accepted"`];
    expect(stored()).toEqual([...accepted("edge-02"), ...accepted("edge-02")]);
    expect(await drift(stack, policy("edge-02"))).toMatchObject({ code: 0, drifted: [] });
    // The inputs of the tags do not change with the name, so that only a refresh updates their outputs.
    await up(stack, policy("edge-03"));
    expect(await drift(stack, policy("edge-03"))).toMatchObject({ code: 0, drifted: [] });
    await stack.result(["refresh", "--yes"], policyEnv(policy("edge-03")));
    expect(stored()).toEqual([...accepted("edge-03"), ...accepted("edge-03")]);
    const { summary } = await stack.result(["preview"], policyEnv(policy("edge-03")));
    expect(summary).toMatchObject({ create: 0, update: 0, replace: 0, delete: 0 });
    await fleet.client.deleteDevice({ params: { uid: edge } });
  });

  it("preview and review block on changes that the service would reject", async () => {
    const stack = newStack();
    await createKey(fleet.client, "bob");
    const exists = /PublicKey "bob": (PublicKey\.)?adopt: .* already exists/;
    const cases: readonly (readonly [Policy, readonly RegExp[]])[] = [
      [
        {
          web: tags("web-99", "edge"),
          ana: key("ana", { tags: ["lab"] }),
          admin: { type: "Namespace", args: { name: "admin" } },
          bob: key("bob"),
        },
        [
          /no device "web-99"/,
          /the namespace .* has no tag "lab"/,
          /Namespace "admin": .* already exists/,
          exists,
        ],
      ],
      // The review finds many existing keys with one list request.
      [Object.fromEntries(["bob", "k1", "k2", "k3", "k4", "k5"].map((name) => [name, key(name)])), [exists]],
    ];
    for (const [policy, reasons] of cases) {
      const preview = await text(stack, ["preview", "--create"], policy);
      const { code, preflightFailures: refused, namespaces } = await review(stack, policy);
      expect([preview.code, code]).toEqual([1, 2]);
      const findings = [...refused, ...namespaces.flatMap(({ notEvaluated }) => notEvaluated)].join("\n");
      for (const words of [preview.text, findings]) for (const why of reasons) expect(words).toMatch(why);
    }
  });

  it("JUnit and Markdown reports contain the failing policy tests", async () => {
    const stack = newStack();
    await up(stack, { ana: key("ana") });
    const [junit, markdown] = [join(testFolder(), "drift.xml"), join(testFolder(), "drift.md")];
    program.write(
      "closed.policy.ts",
      'import { expect, policyTest } from "@gatehouse-access/provider/policy";\n' +
        'policyTest("no root login", ({ access }) => { expect(access).not.toAllow({ login: "root" }); });\n',
    );
    // Runs the command as a process, since policy tests import the installed package.
    const spawned = program.stack({ env: fleet.env, name: stack.name, spawned: true });
    const args = ["drift", "--junit", junit, "--markdown", markdown];
    const { code } = await text(spawned, args, { ana: key("ana") });
    expect(code).toBe(2);
    expect(readFileSync(junit, "utf8")).toMatch(
      /failures="1"[\s\S]*policy tests" name="no root login"><failure/,
    );
    expect(readFileSync(markdown, "utf8")).toContain("no root login");
    rmSync(program.path("closed.policy.ts"));
  });

  describe("drift", () => {
    it("reports API keys that have expired or expire soon, except keys that their program replaces in time", async () => {
      const dataDir = testFolder();
      const first = await startFleet([], { dataDir });
      const apiKey = (name: string, more: object = {}) => ({
        type: "ApiKey",
        args: { name, role: "observer", validDays: 30, ...more },
      });
      const policy = {
        old: apiKey("old"),
        due: apiKey("due"),
        far: apiKey("far"),
        own: apiKey("own", { rotateBefore: 2 }),
      };
      const stackOf = (url: string) =>
        program.stack({ name: "keys", env: { ...first.env, GATEHOUSE_URL: url } });
      await up(stackOf(first.service.url), policy);
      // A running service locks its database, so the test stops the service first.
      await first.stop();
      // Changes the expiry in the database, since the service creates only keys that are valid for at least 30 days.
      const database = new Database(join(dataDir, "gatehouse.db"));
      const end = database.prepare('UPDATE "ApiKey" SET "expiresIn" = ? WHERE "name" = ?');
      for (const [name, days] of Object.entries({ old: -1, due: 13, own: 13 }))
        end.run(Math.floor(Date.now() / 1000) + days * 86_400, name);
      database.close();
      const again = await startService({ dataDir, env: { GATEHOUSE_LOGINS_PER_ACCOUNT: "0" } });
      onTestFinished(async () => void (await again.stop()));
      const report = await drift(stackOf(again.url), policy, ["--unmanaged", "ignore"]);
      const expiring = report.expiring.map(({ name, message }) => [
        name,
        /expired|expires/.exec(message)?.[0],
      ]);
      expect([report.code, expiring.sort()]).toEqual([
        2,
        [
          ["due", "expires"],
          ["old", "expired"],
        ],
      ]);
    });

    it("reports manually renamed or accepted devices and deleted objects, but no field that the program ignores", async () => {
      const stack = newStack();
      const later = await fleet.enrollPending("later-01");
      const policy = {
        ana: key("ana", { hostname: "^web-01$" }),
        web: tags(web, "web"),
        later: tags(later, "later"),
        bob: key("bob", { tags: ["later"] }),
        idle: key("idle", { hostname: "^nothing$" }),
        free: { ...key("free", { hostname: "^other$" }), options: { ignoreChanges: ["username"] } },
      };
      await up(stack, policy);
      await changeKey(fleet.client, "free", { username: "^free$" });
      expect(await drift(stack, policy)).toMatchObject({ code: 0, drifted: [] });
      await fleet.client.updateDevice({ params: { uid: web }, body: { name: "renamed" } });
      await fleet.client.acceptDevice({ params: { uid: later } });
      await deleteKey(fleet.client, "idle");
      await changeKey(fleet.client, "free", { filter: { hostname: "^none$" } });
      const { code, drifted } = await drift(stack, policy);
      expect(code).toBe(2);
      const reported = Object.fromEntries(
        drifted.map(({ name, op, fields, effects: meaning }) => [
          name,
          op === "delete" ? [op, meaning] : [fields.map(({ path }) => path).join(), meaning.join()],
        ]),
      );
      expect(reported).toEqual({
        web: ["deviceName", expect.stringMatching(/^key ana loses login root on renamed/)],
        later: ["deviceStatus", expect.stringMatching(/^key bob gains login root on later-01/)],
        // A deleted key is a finding even if the key gave no access.
        idle: ["delete", []],
        free: ["filter.hostname", ""],
      });
      expect(await repair(stack, policy)).toMatchObject({
        code: 2,
        text: expect.stringContaining("change the device manually, or declare a Device"),
      });
      await fleet.client.updateDevice({ params: { uid: web }, body: { name: "web-01" } });
      await fleet.client.deleteDevice({ params: { uid: later } });
    });

    it("suggests code for the program that resolves the drift", async () => {
      const stack = newStack();
      const policy: Policy = { ana: key("ana"), web: tags(web, "web") };
      await up(stack, policy);
      await fleet.client.deleteDeviceTag({ params: { uid: web, tag: "web" } });
      const data = Buffer.from(keyData("bob")).toString("base64");
      await fleet.client.createPublicKey({
        body: { name: "ana", data, username: "^(ana|bob)$", filter: { hostname: "\u202e" } },
      });
      const { acceptance } = await drift(stack, policy);
      expect(acceptance.changes).toEqual(['remove DeviceTags "web"']);
      // The suggested name is "ana-2", since the program already has a key with the name "ana".
      expect(acceptance.program).toContain('new PublicKey("ana-2"');
      expect(acceptance.program).toContain("\\u202e");
      const written: Policy = {};
      class PublicKey {
        constructor(name: string, args: Record<string, unknown>) {
          written[name] = { type: "PublicKey", args };
        }
      }
      new Function("PublicKey", "login", acceptance.program)(PublicKey, login);
      const followed = { ana: key("ana"), ...written };
      await up(stack, followed);
      expect(await drift(stack, followed)).toMatchObject({ code: 0 });
    });
  });
});
