import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { readTerraformPlan } from "../../provider/plan/terraform/readTerraformPlan.ts";
import { workspaceIn } from "../../provider/terraform/workspace.ts";
import { createClient, passwordCredential } from "../../sdk/index.ts";
import { agentCall, changeKey, createKey, deleteKey } from "../support/fleet.ts";
import { gatehouse, spawnGatehouse } from "../support/gatehouse.ts";
import { keyData } from "../support/policy.ts";
import { startWebhook, type TestWebhook } from "../support/webhook.ts";
import {
  hasTerraform,
  keyArguments,
  LABEL,
  RootModule,
  ref,
  resources,
  ruleArguments,
  sharedTerraform,
} from "./support/terraform.ts";

const ROOT = join(import.meta.dirname, "..", "..");

/** The module in the installed package that policy tests import. */
const WRITTEN = join(ROOT, "provider", "dist", "policyTests", "api", "index.js");

/** The condition of a `check` block on a data source. With a check block, every plan reads the data source again. */
const ASSERTION = { condition: ref("length(data.gatehouse_devices.all.devices) > 0"), error_message: "none" };

/** Returns the text of a policy file with this code. */
const policyFile = (code: string) =>
  `import { expect, policyTest, untested } from ${JSON.stringify(WRITTEN)};\n${code}\n`;
const NO_ROOT = policyFile(
  'policyTest("no root login", ({ access }) => expect(access).not.toAllow({ login: "root" }));',
);

// Long tests run commands as processes, because of policy tests.
describe.runIf(hasTerraform)(`a plan of ${LABEL}`, () => {
  const fleet = sharedTerraform();
  let root: RootModule;
  let planFile: string;
  let hook: TestWebhook;
  beforeAll(async () => {
    hook = await startWebhook();
    for (const name of ["edge-01", "edge-02"]) await fleet.enroll(name);
  });
  beforeEach(() => {
    root = fleet.newModule();
    planFile = join(root.folder, "plan.json");
  });
  afterEach(() => fleet.clear());
  afterAll(() => hook.stop());

  const key = (more: object = {}) => keyArguments({ filter: { hostname: "^edge-01$" }, ...more });
  const estate = (username: string, rule?: object) =>
    resources({
      public_key: { ana: key({ username }) },
      ...(rule && { firewall_rule: { office: rule } }),
    });
  const deny = ruleArguments();
  const plan = async (configuration: object, ...flags: readonly string[]) => {
    root.write({ ...configuration });
    await root.planFile(...flags);
  };
  /** Runs a command with the plan. */
  const run = (...args: readonly string[]) =>
    gatehouse([...args, "--terraform", planFile], { ...fleet.env, GATEHOUSE_NOTIFY_URL: hook.url });
  /** Runs a command with the plan as a process, which policy tests require. */
  const spawned = (...args: readonly string[]) =>
    spawnGatehouse([...args, "--terraform", planFile], fleet.env);
  const review = (...flags: readonly string[]) => run("review", root.folder, ...flags);
  const writePolicy = (text: string) => writeFileSync(join(root.folder, "roots.policy.ts"), text);

  it("shows changed settings with both values, and blocks if a protection is weaker", async () => {
    const params = { tenant: fleet.tenant };
    const { name } = await fleet.client.getNamespace({ params });
    await fleet.client.editNamespace({ params, body: { name, settings: { sessionRecord: true } } });
    const settings = { session_record: false, ssh_forwarding: [{ login: "^deploy$", target: ".*" }] };
    await plan(resources({ namespace: { home: { name, adopt: "overwrite", settings } } }));
    const { code, stdout } = await review();
    expect(stdout).toContain("sessionRecord changes from true to false, which weakens a protection");
    expect(stdout).toContain(
      'sshForwarding changes from [] to [{"login":"^deploy$","target":".*"}], which allows forwarding',
    );
    expect(code).toBe(2);
    expect((await review("--allow-findings")).code).toBe(0);
  });

  it("can be reviewed and evaluated for access before the apply, and reports manual changes as drift", async () => {
    await plan(estate("^root$"));
    const first = await review();
    expect(first.code).toBe(0);
    expect(first.stdout).toContain("key ana gains login root on edge-01");
    const live = await gatehouse(["access", "--json"], fleet.env);
    expect(JSON.parse(live.stdout).grants).toEqual([]);
    const planned = await run("access", "--json", "--folder", root.folder);
    expect(JSON.parse(planned.stdout).grants).toEqual([expect.objectContaining({ logins: ["root"] })]);
    const map = join(root.folder, "map.html");
    await review("--html", map, "--json");
    expect(readFileSync(map, "utf8")).toContain("<!doctype html>");
    await root.must("apply", "plan");

    await plan(estate("^(root|ana)$", deny));
    const second = JSON.parse((await review("--json")).stdout);
    expect(second).toMatchObject({
      engine: "terraform",
      stack: "default",
      summary: { create: 1, update: 1 },
      unknown: [],
    });
    expect(second.changes).toEqual([
      expect.objectContaining({ name: "gatehouse_firewall_rule.office", op: "create" }),
      expect.objectContaining({
        name: "gatehouse_public_key.ana",
        fields: [{ path: "username", old: "^root$", new: "^(root|ana)$" }],
      }),
    ]);
    const changes = second.namespaces[0].access.map(
      ({ change, logins }: { change: string; logins: string[] }) => [change, logins],
    );
    expect(changes).toEqual([
      ["lost", ["root"]],
      ["gained", ["ana"]],
    ]);
    await root.must("apply", "plan");

    const { client } = fleet;
    await changeKey(client, "ana", { username: ".*", filter: { hostname: ".*" } });
    const fingerprint = await createKey(client, "extra");
    for (const flags of [[], ["-refresh-only"]]) {
      await plan(estate("^(root|ana)$", deny), ...flags);
      const { code, stdout } = await run("drift", root.folder, "--notify", "json");
      expect(code).toBe(2);
      expect(stdout).toContain('gatehouse_public_key.ana: username is ".*" (declared "^(root|ana)$")');
      expect(stdout).toContain("PublicKey extra");
      expect(stdout).toContain("1 changed out of band, 1 unmanaged; 1 resource as declared.");
      expect(stdout).toContain("To revert the drift, apply the configuration.");
      expect(stdout).toContain('gatehouse_public_key.ana: username = ".*", filter.hostname = ".*"');
      expect(stdout).toContain(`resource "gatehouse_public_key" "extra" {`);
      expect(stdout).toContain(`id = "${fleet.tenant}/${fingerprint}"`);
    }
    expect(hook.messages).toMatchObject([
      { event: "found", stack: "default", findings: [expect.any(String), expect.any(String)] },
    ]);
  });

  it("can be compared with a reviewed plan before the apply", { tags: ["long"] }, async () => {
    const kept = join(root.folder, "reviewed");
    const save = () => review("--save", kept, "--allow-incomplete");
    const compare = (...more: readonly string[]) => review("--allow-incomplete", "--same-as", kept, ...more);
    const mac = "02:00:00:00:0e:03";
    await fleet.enroll("edge-03", mac);
    const device = { gatehouse_device: { gate: { device: mac, name: "gate" } } };
    const both = (username: string) => ({ resource: { ...estate(username).resource, ...device } });

    await plan(both("^root$"));
    expect(await save()).toMatchObject({ code: 0 });
    expect(readFileSync(kept, "utf8")).not.toContain("^root$");
    await plan(both("^root$"));
    expect(await compare()).toMatchObject({ code: 0 });
    await plan(both("^(root|ana)$"));
    const other = await compare();
    expect([other.code, other.stdout]).toEqual([2, ""]);
    expect(other.stderr).toContain(
      "the plan: changes the same resources with another configuration or other values",
    );
    await plan(estate("^root$"));
    const fewer = JSON.parse((await compare("--json")).stdout);
    const gone = "create gatehouse_device.gate: was reviewed, but is no longer planned";
    expect(fewer).toMatchObject({
      ok: false,
      error: { code: "plan_outdated", differences: [{ message: gone }] },
    });

    await plan(both("^root$"));
    await root.must("apply", "plan");
    const [{ uid = "" } = {}] = (await fleet.client.getDevices()).filter(({ name }) => name === "gate");
    const rename = (name: string) => fleet.client.renameDevice({ params: { uid }, body: { name } });
    await rename("by-hand");
    await plan(both("^root$"));
    expect(await save()).toMatchObject({ code: 0 });
    const before = readFileSync(planFile, "utf8");
    // An agent's report changes a value that the data source reads.
    await agentCall(fleet.client, "edge-03", mac, fleet.tenant, "v0.19.9");
    await plan(both("^root$"));
    expect(before).not.toContain("v0.19.9");
    expect(readFileSync(planFile, "utf8")).toContain("v0.19.9");
    expect(await compare()).toMatchObject({ code: 0 });
    await rename("by-another-hand");
    await plan(both("^root$"));
    expect(await compare()).toMatchObject({ code: 2 });

    await root.destroy();

    // If a value is unknown until the apply, the digest contains the value's expression instead. The digest contains no
    // sensitive value.
    const who = ref("terraform_data.who.output");
    const later = (pattern: string, more: object = {}) => ({
      ...estate(pattern),
      variable: { secret: { default: "1234", sensitive: true } },
      ...more,
      check: { now: { data: { gatehouse_devices: { all: {} } }, assert: ASSERTION } },
      resource: {
        ...estate(pattern).resource,
        terraform_data: { who: { input: "^root$" }, hidden: { input: ref("var.secret") } },
      },
    });
    await plan(later(who));
    expect(await save()).toMatchObject({ code: 0 });
    await fleet.enroll("edge-04");
    await plan(later(who));
    expect(await compare()).toMatchObject({ code: 0 });
    const inTenant = { provider: { gatehouse: { tenant: fleet.tenant } } };
    for (const other of [later(`${who}|.*`), later(who, inTenant)]) {
      await plan(other);
      expect(await compare()).toMatchObject({ code: 2 });
    }
    const read = JSON.parse(readFileSync(planFile, "utf8"));
    expect(JSON.stringify(read)).toContain("1234");
    const origin = {
      name: "a plan",
      workspace: workspaceIn(root.folder, {}),
      isSettingAlone: () => false,
      isInPlan: () => false,
    };
    const digest = () => readTerraformPlan(JSON.stringify(read), origin).work().digest;
    const first = digest();
    for (const { change } of read.resource_changes)
      change.after = JSON.parse(JSON.stringify(change.after).replaceAll("1234", "4321"));
    expect(digest()).toBe(first);
    read.resource_changes.at(-1).provider_name = "registry.terraform.io/elsewhere/gatehouse";
    expect(digest()).not.toBe(first);

    writeFileSync(kept, "{}");
    const useless = await compare();
    expect([useless.code, useless.stderr]).toEqual([
      1,
      expect.stringContaining("reviewed: the file is not a saved review of a Terraform plan"),
    ]);
    const pulumi = await gatehouse(["review", root.folder, "--same-as", kept], fleet.env);
    expect([pulumi.code, pulumi.stderr]).toEqual([1, expect.stringContaining("--same-as")]);
  });

  it("has a review that reports values that are unknown before the apply", async () => {
    const data = { terraform_data: { who: { input: "^root$" } } };
    await plan({ resource: { ...data, ...estate(ref("terraform_data.who.output")).resource } });
    const { code, stdout } = await review();
    expect(code).toBe(2);
    expect(stdout).toContain('PublicKey "gatehouse_public_key.ana": its username is secret or unknown');
    expect(stdout).toContain("No access changes.");
    expect(await review("--allow-incomplete")).toMatchObject({ code: 0 });
    expect(await run("access", "--folder", root.folder)).toMatchObject({ code: 2 });
  });

  it("is reviewed without regard to letter case and white space", async () => {
    await plan(
      resources({
        device_tags: { edge: { device: "EDGE-01", tags: ["edge"] } },
        public_key: { ana: key({ data: `  ${keyData("ana")} of ana`, filter: { tags: ["edge"] } }) },
      }),
    );
    const { stdout } = await review();
    expect(stdout).toContain("key ana gains login root on edge-01");
    expect(stdout).not.toContain("Limitations");
  });

  it("keeps the access of a key that the plan only removes from the state", async () => {
    await root.applied(estate("^root$"));
    await plan({ removed: { from: "gatehouse_public_key.ana", lifecycle: { destroy: false } } });
    const text = (await review()).stdout;
    expect(text).toContain("No access changes.");
    expect(text).toContain('PublicKey "gatehouse_public_key.ana" leaves its object unmanaged');
    const { changes, summary } = JSON.parse((await review("--json")).stdout);
    expect(changes).toMatchObject([{ name: "gatehouse_public_key.ana", op: "delete", retained: true }]);
    expect(summary).toMatchObject({ delete: 1 });
    await root.must("apply", "plan");
    await deleteKey(fleet.client, "ana");
  });

  it("is checked by the policy tests in its folder", { tags: ["long"] }, async () => {
    writePolicy(NO_ROOT);
    const tested = (code: number) => ({ code, stdout: expect.stringContaining("no root login") });
    await plan(estate("^ana$"));
    expect(await spawned("test", root.folder)).toMatchObject(tested(0));
    await plan(estate(".*"));
    expect(await spawned("test", root.folder)).toMatchObject(tested(2));
    expect(await spawned("review", root.folder)).toMatchObject(tested(2));
  });

  it("needs a policy test for each namespace that it changes, however it selects the namespace", {
    tags: ["long"],
    timeout: 240_000,
  }, async () => {
    const { tenantId: tenant } = await fleet.client.createNamespace({ body: { name: "bravo" } });
    const noKeys = "({ policy }) => expect(policy.keys).toSatisfy((keys) => keys.length === 0)";
    const write = (options: string, more = "") =>
      writePolicy(policyFile(`policyTest("no keys", ${noKeys}, ${options});\n${more}`));
    const outcomes = async () => {
      const ended = [await spawned("review", root.folder), await spawned("test", root.folder)];
      return { codes: ended.map(({ code }) => code), texts: ended.map(({ stdout }) => stdout) };
    };
    const both = (text: string) => [expect.stringContaining(text), expect.stringContaining(text)];
    const resource = (more: object) => resources({ public_key: { ana: key({ username: ".*", ...more }) } });
    write("{}");
    for (const configuration of [
      resource({ tenant }),
      { provider: { gatehouse: [{ alias: "bravo", tenant }] }, ...resource({ provider: "gatehouse.bravo" }) },
      { provider: { gatehouse: { tenant } }, ...resource({}) },
    ]) {
      await plan(configuration);
      const text = `no policy test checks the namespace bravo (${tenant}), which the plan changes`;
      expect(await outcomes()).toEqual({ codes: [2, 2], texts: both(text) });
    }
    write('{ namespaces: ["bravo"] }');
    expect(await outcomes()).toEqual({ codes: [2, 2], texts: both("FAIL") });
    write("{}", `untested("${tenant}", "no devices");`);
    expect(await outcomes()).toEqual({ codes: [0, 0], texts: both("no devices") });
    await fleet.client.forTenant(tenant).deleteNamespace({ params: { tenant } });
  });

  it("has no drift in fields that its configuration ignores", async () => {
    const ignoring = resources({ public_key: { ana: key({ lifecycle: { ignore_changes: ["username"] } }) } });
    await root.applied(ignoring);
    await changeKey(fleet.client, "ana", { username: "^ana$" });
    await plan(ignoring);
    expect(await run("drift", root.folder)).toMatchObject({ code: 0 });
    await changeKey(fleet.client, "ana", { filter: { hostname: "^edge" } });
    await plan(ignoring);
    const { code, stdout } = await run("drift", root.folder);
    expect([code, stdout]).toEqual([2, expect.stringContaining('filter.hostname is "^edge"')]);
    expect(stdout).not.toContain("username");
  });

  describe("with incomplete values", () => {
    const ROOT_ALLOWED = estate(".*");
    /** Returns the exit codes of all commands that read the plan, and the output of the review. */
    async function codes(): Promise<{ readonly all: readonly (number | null)[]; readonly text: string }> {
      writePolicy(policyFile('policyTest("all is well", () => {});'));
      const reviewed = await spawned("review", root.folder);
      const others = [
        await spawned("test", root.folder),
        await spawned("access", "--folder", root.folder),
        await spawned("drift", root.folder, "--unmanaged", "ignore"),
      ];
      return { all: [reviewed, ...others].map(({ code }) => code), text: reviewed.stdout + reviewed.stderr };
    }
    const url = () => fleet.service.url;
    /** Configures the provider with the variables `url` and `tenant`. */
    const byVariable = (gatehouse: object, ephemeral = false) => ({
      variable: { url: { default: url(), ephemeral }, tenant: { default: fleet.tenant } },
      provider: { gatehouse },
    });

    const UNKNOWN = /provider gatehouse: (url|tenant) is unknown in the plan/;
    // The change in access that the review reports, even if the plan does not contain the provider's URL or namespace.
    const GAINED = "key ana gains every login on edge-01";
    const INCOMPLETE = [2, 2, 2, 2];
    const COMPLETE = [0, 0, 0, 0];
    it.each<[string, readonly unknown[], string | RegExp, () => object]>([
      [
        "a local value",
        INCOMPLETE,
        UNKNOWN,
        () => ({ locals: { url: url() }, provider: { gatehouse: { url: ref("local.url") } } }),
      ],
      [
        "a text around a variable",
        INCOMPLETE,
        UNKNOWN,
        () => ({
          variable: { host: { default: url().replace("http://", "") } },
          provider: { gatehouse: { url: `http://${ref("var.host")}` } },
        }),
      ],
      ["a variable and more", INCOMPLETE, UNKNOWN, () => byVariable({ url: `${ref("var.url")}/` })],
      // A plan file contains an ephemeral variable's default, even if the run used another value.
      ["an ephemeral variable", INCOMPLETE, UNKNOWN, () => byVariable({ url: ref("var.url") }, true)],
      [
        "a tenant that only the apply knows",
        INCOMPLETE,
        UNKNOWN,
        () => ({
          resource: { ...ROOT_ALLOWED.resource, terraform_data: { id: { input: fleet.tenant } } },
          provider: { gatehouse: { tenant: ref("terraform_data.id.output") } },
        }),
      ],
      [
        "a local value, with its namespace in the plan of its resources",
        COMPLETE,
        GAINED,
        () => ({ locals: { id: fleet.tenant }, provider: { gatehouse: { tenant: ref("local.id") } } }),
      ],
      [
        "variables alone",
        COMPLETE,
        GAINED,
        () => byVariable({ url: ref("var.url"), tenant: ref("var.tenant") }),
      ],
      [
        "the address of another service",
        [2, 2, 2, expect.anything()],
        "not evaluated, since it is on another service (http://127.0.0.1:1)",
        () => ({
          provider: { gatehouse: { url: "http://127.0.0.1:1", tenant: fleet.tenant, skip_preflight: true } },
        }),
      ],
      [
        "aliases alone",
        COMPLETE,
        GAINED,
        () => ({
          provider: { gatehouse: [{ alias: "main", url: url(), tenant: fleet.tenant }] },
          ...resources({ public_key: { ana: key({ username: ".*", provider: "gatehouse.main" }) } }),
        }),
      ],
    ])(
      "sets the exit code of every command if %s configures the provider",
      { tags: ["long"] },
      async (_what, exits, output, more) => {
        await plan({ ...ROOT_ALLOWED, ...more() });
        const { all, text } = await codes();
        expect(all).toEqual(exits);
        expect(text).toMatch(output);
        if (output === UNKNOWN) expect(text).toContain(GAINED);
      },
    );

    it("results in the same exit codes if the configuration is in Terraform's native syntax", async () => {
      const native = async (expression: string) => {
        const block = `variable "url" {\n  default = "${url()}"\n}\nprovider "gatehouse" {\n  url = ${expression}\n}\n`;
        writeFileSync(join(root.folder, "service.tf"), block);
        await plan(ROOT_ALLOWED);
        return review();
      };
      expect(await native("var.url # the service")).toMatchObject({ code: 0 });
      for (const other of [`"${ref("var.url")}/"`, 'replace(var.url, "x", "y")', "(var.url)"]) {
        expect(await native(other), other).toMatchObject({
          code: 2,
          stdout: expect.stringContaining("provider gatehouse: url is unknown in the plan"),
        });
      }
    });

    it("is incomplete if the run of the plan failed", { tags: ["long"] }, async () => {
      await plan(ROOT_ALLOWED);
      const { ...failed } = JSON.parse(readFileSync(planFile, "utf8"));
      writeFileSync(planFile, JSON.stringify({ ...failed, errored: true }));
      const { all, text } = await codes();
      expect(all).toEqual([2, 2, 2, 2]);
      expect(text).toContain("the plan is incomplete, since its run failed");
    });

    it("can be read with any local name of the provider", async () => {
      const source = "gatehouse-access/gatehouse";
      const configuration = {
        terraform: { required_providers: { gh: { source } } },
        variable: { tenant: { default: fleet.tenant } },
        provider: { gh: { url: url(), tenant: ref("var.tenant") } },
        ...resources({ public_key: { ana: key({ username: ".*", provider: "gh" }) } }),
        // The module uses another local name for the provider than the root module. So the plan has a second provider
        // block, which has this local name.
        module: { inner: { source: "./inner", providers: { gatehouse: "gh" } } },
      };
      const inner = new RootModule(join(root.folder, "inner"), root.env);
      inner.write({});
      // The environment contains neither the service nor the namespace, so both must come from the plan.
      const { GATEHOUSE_URL: _url, GATEHOUSE_TENANT: _tenant, ...bare } = fleet.env;
      const runBare = (...args: readonly string[]) => gatehouse([...args, "--terraform", planFile], bare);
      root.write(configuration);
      await root.must("init");
      await plan(configuration);
      expect(await runBare("review", root.folder)).toMatchObject({
        code: 0,
        stdout: expect.stringContaining("key ana gains every login on edge-01"),
      });
      await root.must("apply", "plan");

      const data = Buffer.from(keyData("bob")).toString("base64");
      const body = { name: "ana", data, username: "^(ana|bob)$", filter: { hostname: ".*" } };
      await fleet.client.createPublicKey({ body });
      await plan(configuration);
      const found = await runBare("drift", root.folder, "--json");
      const { acceptance } = JSON.parse(found.stdout);
      expect(acceptance.program).toContain('resource "gatehouse_public_key" "ana_2" {');
      writeFileSync(join(root.folder, "accepted.tf"), acceptance.program);
      await plan(configuration);
      await root.must("apply", "plan");
      expect(await root.changes()).toEqual([]);
      await plan(configuration);
      expect(await runBare("drift", root.folder)).toMatchObject({ code: 0 });

      const other = readFileSync(planFile, "utf8").replaceAll(`/${source}"`, '/elsewhere/gatehouse"');
      writeFileSync(planFile, other);
      expect(await review()).toMatchObject({
        code: 2,
        stdout: expect.stringContaining(
          "not evaluated, since it belongs to the provider registry.terraform.io/elsewhere/gatehouse",
        ),
      });
    });

    it("is reviewed only with the caller's credential, even if a provider block has a credential for another namespace", async () => {
      await fleet.service.createUser({ username: "neighbor", password: "correct-horse" });
      const credential = passwordCredential({ username: "neighbor", password: "correct-horse" });
      await using neighbor = createClient({ url: url(), credential });
      const { tenantId } = await neighbor.createNamespace({ body: { name: "neighbor" } });
      const usual = { url: url(), tenant: fleet.tenant };
      const own = { alias: "own", url: url(), tenant: tenantId };
      await plan({
        provider: { gatehouse: [usual, { ...own, username: "neighbor", password: "correct-horse" }] },
        ...resources({ public_key: { ana: key({ username: ".*", provider: "gatehouse.own" }) } }),
      });
      const { code, stdout } = await review("--json");
      const { preflightFailures, notEvaluated } = JSON.parse(stdout);
      expect([code, preflightFailures]).toEqual([2, []]);
      expect(notEvaluated).toEqual([expect.stringContaining(`the namespace ${tenantId} could not be read`)]);
    });
  });

  it("in JSON is distinguished from other files", async () => {
    const expectRejected = async (text: string, reason: string) => {
      writeFileSync(planFile, text);
      expect(await review()).toMatchObject({ code: 1, stderr: expect.stringContaining(reason) });
    };
    await expectRejected("PK\u0003\u0004", "is a saved plan, which only Terraform or OpenTofu can read");
    const encrypted = '{"meta":{},"encrypted_data":"a","encryption_version":"v0"}';
    await expectRejected(encrypted, "is an encrypted file of OpenTofu");
    for (const text of ["{", `{"a":${"[".repeat(5_000_000)}${"]".repeat(5_000_000)}}`])
      await expectRejected(text, "it is not JSON. Create the file with: terraform show -json");
    await expectRejected('{"format_version":"7.0"}', "format_version must be 1.x");
    await expectRejected('{"format_version":"1.0"}', "error: ");
    await root.applied(estate("^root$"));
    await expectRejected(await root.must("show", "-json"), "is a state, not a plan");
    await expectRejected(await root.must("providers", "schema", "-json"), "schemas of providers");
    planFile = join(root.folder, "none.json");
    expect(await review()).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("none.json: it does not exist. Correct the path."),
    });
    const folder = join(root.folder, "none");
    for (const args of [
      ["review", folder],
      ["drift", folder],
      ["access", "--folder", folder],
    ])
      expect(await run(...args)).toMatchObject({
        code: 1,
        stderr: `error: Cannot read ${folder}: it does not exist. Correct the path. [plan_file]\n`,
      });
    expect((await review("--stack", "x")).stderr).toContain("cannot be used with");
  });
});
