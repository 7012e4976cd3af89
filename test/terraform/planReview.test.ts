import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { readTerraformPlan } from "../../provider/plan/terraform/readTerraformPlan.ts";
import { workspaceIn } from "../../provider/terraform/workspace.ts";
import { createClient, passwordCredential } from "../../sdk/index.ts";
import { sshKeyLine } from "../provider/support/programs.ts";
import { agentCall, type Fleet, startFleet } from "../support/fleet.ts";
import { testFolder } from "../support/folder.ts";
import { gatehouse, spawnGatehouse } from "../support/gatehouse.ts";
import { startWebhook, type TestWebhook } from "../support/webhook.ts";
import {
  type AttachedProvider,
  hasTerraform,
  LABEL,
  RootModule,
  startProvider,
} from "./support/terraform.ts";

const ROOT = join(import.meta.dirname, "..", "..");

/** The module in the installed package that policy tests import. */
const WRITTEN = join(ROOT, "provider", "dist", "policyTests", "api", "index.js");

/** The condition of a `check` block on a data source. With a check block, every plan reads the data source again. */
const ASSERTION = { condition: `\${length(data.gatehouse_devices.all.devices) > 0}`, error_message: "none" };

describe.runIf(hasTerraform)(`a plan of ${LABEL}`, () => {
  let fleet: Fleet;
  let provider: AttachedProvider;
  let root: RootModule;
  let planFile: string;
  let hook: TestWebhook;
  beforeAll(async () => {
    fleet = await startFleet();
    hook = await startWebhook();
    provider = await startProvider(fleet.env);
    for (const name of ["edge-01", "edge-02"]) await fleet.enroll(name);
  });
  beforeEach(() => {
    root = new RootModule(testFolder(), { ...provider.env, ...fleet.env });
    planFile = join(root.folder, "plan.json");
  });
  afterAll(async () => {
    await provider.stop();
    await hook.stop();
    await fleet.stop();
  });

  const line = sshKeyLine("ana");
  const estate = (username: string, rule?: object) => ({
    resource: {
      gatehouse_public_key: { ana: { name: "ana", data: line, username, filter: { hostname: "^edge-01$" } } },
      ...(rule && { gatehouse_firewall_rule: { office: rule } }),
    },
  });
  const deny = {
    action: "deny",
    priority: 1,
    source_ip: ".*",
    username: "^root$",
    filter: { hostname: ".*" },
  };
  const plan = async (configuration: object, ...flags: readonly string[]) => {
    root.write({ ...configuration });
    writeFileSync(planFile, JSON.stringify(await root.plan(...flags)));
  };
  const run = (...args: readonly string[]) =>
    gatehouse([...args, "--terraform", planFile], { ...fleet.env, GATEHOUSE_NOTIFY_URL: hook.url });

  it("shows changed settings with both values, and blocks if a protection is weaker", async () => {
    const params = { tenant: fleet.tenant };
    const { name } = await fleet.client.getNamespace({ params });
    await fleet.client.editNamespace({ params, body: { name, settings: { sessionRecord: true } } });
    const settings = { session_record: false, ssh_forwarding: [{ login: "^deploy$", target: ".*" }] };
    await plan({ resource: { gatehouse_namespace: { home: { name, adopt: "overwrite", settings } } } });
    const review = await run("review", root.folder);
    expect(review.stdout).toContain("sessionRecord changes from true to false, which weakens a protection");
    expect(review.stdout).toContain(
      'sshForwarding changes from [] to [{"login":"^deploy$","target":".*"}], which allows forwarding',
    );
    expect(review.code).toBe(2);
    expect((await run("review", root.folder, "--allow-findings")).code).toBe(0);
  });

  it("can be reviewed and evaluated for access before the apply, and reports manual changes as drift", async () => {
    await plan(estate("^root$"));
    const first = await run("review", root.folder);
    expect(first.code).toBe(0);
    expect(first.stdout).toContain("key ana gains login root on edge-01");
    const live = await gatehouse(["access", "--json"], fleet.env);
    expect(JSON.parse(live.stdout).grants).toEqual([]);
    const planned = await run("access", "--json", "--folder", root.folder);
    expect(JSON.parse(planned.stdout).grants).toEqual([expect.objectContaining({ logins: ["root"] })]);
    const map = join(root.folder, "map.html");
    await run("review", root.folder, "--html", map, "--json");
    expect(readFileSync(map, "utf8")).toContain("<!doctype html>");
    await root.must("apply", "plan");

    await plan(estate("^(root|ana)$", deny));
    const second = JSON.parse((await run("review", root.folder, "--json")).stdout);
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
    const [key] = await client.getPublicKeys();
    const anywhere = { username: ".*", filter: { hostname: ".*" } };
    await client.updatePublicKey({
      params: { fingerprint: key?.fingerprint ?? "" },
      body: { name: "ana", ...anywhere },
    });
    const data = Buffer.from(sshKeyLine()).toString("base64");
    const { fingerprint } = await client.createPublicKey({ body: { name: "extra", data, ...anywhere } });
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
    await root.must("destroy", "-auto-approve");
    await client.deletePublicKey({ params: { fingerprint } });
  });

  it("can be compared with a reviewed plan before the apply", async () => {
    const kept = join(root.folder, "reviewed");
    const save = () => run("review", root.folder, "--save", kept, "--allow-incomplete");
    const compare = (...more: readonly string[]) =>
      run("review", root.folder, "--allow-incomplete", "--same-as", kept, ...more);
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

    await root.must("destroy", "-auto-approve");

    // If a value is unknown until the apply, the digest contains the value's expression instead. The digest contains no
    // sensitive value.
    const later = (pattern: string, more: object = {}) => ({
      ...estate(pattern),
      variable: { secret: { default: "1234", sensitive: true } },
      ...more,
      check: { now: { data: { gatehouse_devices: { all: {} } }, assert: ASSERTION } },
      resource: {
        ...estate(pattern).resource,
        terraform_data: { who: { input: "^root$" }, hidden: { input: `\${var.secret}` } },
      },
    });
    await plan(later(`\${terraform_data.who.output}`));
    expect(await save()).toMatchObject({ code: 0 });
    await fleet.enroll("edge-04");
    await plan(later(`\${terraform_data.who.output}`));
    expect(await compare()).toMatchObject({ code: 0 });
    for (const other of [
      later(`\${terraform_data.who.output}|.*`),
      later(`\${terraform_data.who.output}`, { provider: { gatehouse: { tenant: fleet.tenant } } }),
    ]) {
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
    const data = { resource: { terraform_data: { who: { input: "^root$" } } } };
    const pattern = `\${terraform_data.who.output}`;
    await plan({ resource: { ...data.resource, ...estate(pattern).resource } });
    const { code, stdout } = await run("review", root.folder);
    expect(code).toBe(2);
    expect(stdout).toContain('PublicKey "gatehouse_public_key.ana": its username is secret or unknown');
    expect(stdout).toContain("No access changes.");
    expect(await run("review", root.folder, "--allow-incomplete")).toMatchObject({ code: 0 });
    expect(await run("access", "--folder", root.folder)).toMatchObject({ code: 2 });
  });

  it("is reviewed without regard to letter case and white space", async () => {
    await plan({
      resource: {
        gatehouse_device_tags: { edge: { device: "EDGE-01", tags: ["edge"] } },
        gatehouse_public_key: {
          ana: { name: "ana", data: `  ${line} of ana`, username: "^root$", filter: { tags: ["edge"] } },
        },
      },
    });
    const { stdout } = await run("review", root.folder);
    expect(stdout).toContain("key ana gains login root on edge-01");
    expect(stdout).not.toContain("Limitations");
  });

  it("keeps the access of a key that the plan only removes from the state", async () => {
    await plan(estate("^root$"));
    await root.must("apply", "plan");
    await plan({ removed: { from: "gatehouse_public_key.ana", lifecycle: { destroy: false } } });
    const text = (await run("review", root.folder)).stdout;
    expect(text).toContain("No access changes.");
    expect(text).toContain('PublicKey "gatehouse_public_key.ana" leaves its object unmanaged');
    const { changes, summary } = JSON.parse((await run("review", root.folder, "--json")).stdout);
    expect(changes).toMatchObject([{ name: "gatehouse_public_key.ana", op: "delete", retained: true }]);
    expect(summary).toMatchObject({ delete: 1 });
    await root.must("apply", "plan");
    const [{ fingerprint = "" } = {}] = await fleet.client.getPublicKeys();
    await fleet.client.deletePublicKey({ params: { fingerprint } });
  });

  it("is checked by the policy tests in its folder", async () => {
    writeFileSync(
      join(root.folder, "roots.policy.ts"),
      `import { expect, policyTest } from ${JSON.stringify(WRITTEN)};
policyTest("no root login", ({ access }) => {
  expect(access).not.toAllow({ login: "root" });
});
`,
    );
    const test = () => spawnGatehouse(["test", root.folder, "--terraform", planFile], fleet.env);
    await plan(estate("^ana$"));
    expect(await test()).toMatchObject({ code: 0, stdout: expect.stringContaining("no root login") });
    await plan(estate(".*"));
    expect(await test()).toMatchObject({ code: 2, stdout: expect.stringContaining("no root login") });
    const review = await spawnGatehouse(["review", root.folder, "--terraform", planFile], fleet.env);
    expect(review).toMatchObject({ code: 2, stdout: expect.stringContaining("no root login") });
  });

  it("needs a policy test for each namespace that it changes, however it selects the namespace", {
    timeout: 240_000,
  }, async () => {
    const { tenantId: tenant } = await fleet.client.createNamespace({ body: { name: "bravo" } });
    const policyFile = (options: string, more = "") =>
      writeFileSync(
        join(root.folder, "roots.policy.ts"),
        `import { expect, policyTest, untested } from ${JSON.stringify(WRITTEN)};
policyTest("no keys", ({ policy }) => {
  expect(policy.keys).toSatisfy((keys) => keys.length === 0);
}, ${options});
${more}`,
      );
    const outcomes = async () => {
      const command = (name: string) =>
        spawnGatehouse([name, root.folder, "--terraform", planFile], fleet.env);
      const [review, test] = [await command("review"), await command("test")];
      return { codes: [review.code, test.code], texts: [review.stdout, test.stdout] };
    };
    const both = (text: string) => [expect.stringContaining(text), expect.stringContaining(text)];
    const { ana } = estate(".*").resource.gatehouse_public_key;
    const resource = (more: object) => ({ resource: { gatehouse_public_key: { ana: { ...ana, ...more } } } });
    policyFile("{}");
    for (const configuration of [
      resource({ tenant }),
      { provider: { gatehouse: [{ alias: "bravo", tenant }] }, ...resource({ provider: "gatehouse.bravo" }) },
      { provider: { gatehouse: { tenant } }, ...resource({}) },
    ]) {
      await plan(configuration);
      const text = `no policy test checks the namespace bravo (${tenant}), which the plan changes`;
      expect(await outcomes()).toEqual({ codes: [2, 2], texts: both(text) });
    }
    policyFile('{ namespaces: ["bravo"] }');
    expect(await outcomes()).toEqual({ codes: [2, 2], texts: both("FAIL") });
    policyFile("{}", `untested("${tenant}", "no devices");`);
    expect(await outcomes()).toEqual({ codes: [0, 0], texts: both("no devices") });
    await fleet.client.forTenant(tenant).deleteNamespace({ params: { tenant } });
  });

  it("has no drift in fields that its configuration ignores", async () => {
    const ignoring = estate("^root$");
    Object.assign(ignoring.resource.gatehouse_public_key.ana, {
      lifecycle: { ignore_changes: ["username"] },
    });
    await plan(ignoring);
    await root.must("apply", "plan");
    const [{ fingerprint = "" } = {}] = await fleet.client.getPublicKeys();
    const change = (username: string, hostname: string) =>
      fleet.client.updatePublicKey({
        params: { fingerprint },
        body: { name: "ana", username, filter: { hostname } },
      });
    await change("^ana$", "^edge-01$");
    await plan(ignoring);
    expect(await run("drift", root.folder)).toMatchObject({ code: 0 });
    await change("^ana$", "^edge");
    await plan(ignoring);
    const { code, stdout } = await run("drift", root.folder);
    expect([code, stdout]).toEqual([2, expect.stringContaining('filter.hostname is "^edge"')]);
    expect(stdout).not.toContain("username");
    await root.must("destroy", "-auto-approve");
  });

  describe("with incomplete values", () => {
    const ROOT_ALLOWED = estate(".*");
    const policy = () =>
      writeFileSync(
        join(root.folder, "roots.policy.ts"),
        `import { policyTest } from ${JSON.stringify(WRITTEN)};\npolicyTest("all is well", () => {});\n`,
      );
    /** Returns the exit codes of all commands that read the plan, and the output of the review. */
    async function codes(): Promise<{ readonly all: readonly (number | null)[]; readonly text: string }> {
      policy();
      const run = (...args: readonly string[]) =>
        spawnGatehouse([...args, "--terraform", planFile], fleet.env);
      const review = await run("review", root.folder);
      const others = [
        await run("test", root.folder),
        await run("access", "--folder", root.folder),
        await run("drift", root.folder, "--unmanaged", "ignore"),
      ];
      const { stdout, stderr } = review;
      return { all: [review, ...others].map(({ code }) => code), text: stdout + stderr };
    }
    const url = () => fleet.service.url;

    const UNKNOWN = /provider gatehouse: (url|tenant) is unknown in the plan/;
    // The change in access that the review reports, even if the plan does not contain the provider's URL or namespace.
    const GAINED = "key ana gains every login on edge-01";
    it.each<[string, () => object, readonly unknown[], string | RegExp]>([
      [
        "a local value",
        () => ({ locals: { url: url() }, provider: { gatehouse: { url: `\${local.url}` } } }),
        [2, 2, 2, 2],
        UNKNOWN,
      ],
      [
        "a text around a variable",
        () => ({
          variable: { host: { default: url().replace("http://", "") } },
          provider: { gatehouse: { url: `http://\${var.host}` } },
        }),
        [2, 2, 2, 2],
        UNKNOWN,
      ],
      [
        "a variable and more",
        () => ({ variable: { url: { default: url() } }, provider: { gatehouse: { url: `\${var.url}/` } } }),
        [2, 2, 2, 2],
        UNKNOWN,
      ],
      [
        // A plan file contains an ephemeral variable's default, even if the run used another value.
        "an ephemeral variable",
        () => ({
          variable: { url: { default: url(), ephemeral: true } },
          provider: { gatehouse: { url: `\${var.url}` } },
        }),
        [2, 2, 2, 2],
        UNKNOWN,
      ],
      [
        "a tenant that only the apply knows",
        () => ({
          resource: { ...ROOT_ALLOWED.resource, terraform_data: { id: { input: fleet.tenant } } },
          provider: { gatehouse: { tenant: `\${terraform_data.id.output}` } },
        }),
        [2, 2, 2, 2],
        UNKNOWN,
      ],
      [
        "a local value, with its namespace in the plan of its resources",
        () => ({ locals: { id: fleet.tenant }, provider: { gatehouse: { tenant: `\${local.id}` } } }),
        [0, 0, 0, 0],
        GAINED,
      ],
      [
        "variables alone",
        () => ({
          variable: { url: { default: url() }, tenant: { default: fleet.tenant } },
          provider: { gatehouse: { url: `\${var.url}`, tenant: `\${var.tenant}` } },
        }),
        [0, 0, 0, 0],
        GAINED,
      ],
      [
        "the address of another service",
        () => ({ provider: { gatehouse: { url: "http://127.0.0.1:1", tenant: fleet.tenant } } }),
        [2, 2, 2, expect.anything()],
        "not evaluated, since it is on another service (http://127.0.0.1:1)",
      ],
      [
        "aliases alone",
        () => ({
          provider: { gatehouse: [{ alias: "main", url: url(), tenant: fleet.tenant }] },
          resource: {
            gatehouse_public_key: {
              ana: { ...ROOT_ALLOWED.resource.gatehouse_public_key.ana, provider: "gatehouse.main" },
            },
          },
        }),
        [0, 0, 0, 0],
        GAINED,
      ],
    ])(
      "sets the exit code of every command if %s configures the provider",
      async (_what, more, exits, output) => {
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
        return run("review", root.folder);
      };
      expect(await native("var.url # the service")).toMatchObject({ code: 0 });
      for (const other of [`"\${var.url}/"`, 'replace(var.url, "x", "y")', "(var.url)"]) {
        expect(await native(other), other).toMatchObject({
          code: 2,
          stdout: expect.stringContaining("provider gatehouse: url is unknown in the plan"),
        });
      }
    });

    it("is incomplete if the run of the plan failed", async () => {
      await plan(ROOT_ALLOWED);
      writeFileSync(
        planFile,
        JSON.stringify({ ...JSON.parse(readFileSync(planFile, "utf8")), errored: true }),
      );
      const { all, text } = await codes();
      expect(all).toEqual([2, 2, 2, 2]);
      expect(text).toContain("the plan is incomplete, since its run failed");
    });

    it("can be read with any local name of the provider", async () => {
      const source = "gatehouse-access/gatehouse";
      const { ana } = ROOT_ALLOWED.resource.gatehouse_public_key;
      const configuration = {
        terraform: { required_providers: { gh: { source } } },
        variable: { tenant: { default: fleet.tenant } },
        provider: { gh: { url: url(), tenant: `\${var.tenant}` } },
        resource: { gatehouse_public_key: { ana: { ...ana, provider: "gh" } } },
        // The module uses another local name for the provider than the root module. So the plan has a second provider
        // block, which has this local name.
        module: { inner: { source: "./inner", providers: { gatehouse: "gh" } } },
      };
      const inner = new RootModule(join(root.folder, "inner"), root.env);
      inner.write({});
      // The environment contains neither the service nor the namespace, so both must come from the plan.
      const { GATEHOUSE_URL: _url, GATEHOUSE_TENANT: _tenant, ...bare } = fleet.env;
      const run = (...args: readonly string[]) => gatehouse([...args, "--terraform", planFile], bare);
      root.write(configuration);
      await root.must("init");
      await plan(configuration);
      const review = await run("review", root.folder);
      expect([review.code, review.stdout]).toEqual([
        0,
        expect.stringContaining("key ana gains every login on edge-01"),
      ]);
      await root.must("apply", "plan");

      const data = Buffer.from(sshKeyLine()).toString("base64");
      const body = { name: "ana", data, username: "^(ana|bob)$", filter: { hostname: ".*" } };
      await fleet.client.createPublicKey({ body });
      await plan(configuration);
      const found = await run("drift", root.folder, "--json");
      const { acceptance } = JSON.parse(found.stdout);
      expect(acceptance.program).toContain('resource "gatehouse_public_key" "ana_2" {');
      writeFileSync(join(root.folder, "accepted.tf"), acceptance.program);
      await plan(configuration);
      await root.must("apply", "plan");
      expect(await root.changes()).toEqual([]);
      await plan(configuration);
      expect(await run("drift", root.folder)).toMatchObject({ code: 0 });

      const other = readFileSync(planFile, "utf8").replaceAll(`/${source}"`, '/elsewhere/gatehouse"');
      writeFileSync(planFile, other);
      const foreign = await gatehouse(["review", root.folder, "--terraform", planFile], fleet.env);
      expect([foreign.code, foreign.stdout]).toEqual([
        2,
        expect.stringContaining(
          "not evaluated, since it belongs to the provider registry.terraform.io/elsewhere/gatehouse",
        ),
      ]);
      await root.must("destroy", "-auto-approve");
    });

    it("is reviewed only with the caller's credential, even if a provider block has a credential for another namespace", async () => {
      await fleet.service.createUser({ username: "neighbor", password: "correct-horse" });
      const credential = passwordCredential({ username: "neighbor", password: "correct-horse" });
      await using neighbor = createClient({ url: url(), credential });
      const { tenantId } = await neighbor.createNamespace({ body: { name: "neighbor" } });
      const own = { alias: "own", tenant: tenantId, username: "neighbor", password: "correct-horse" };
      const key = { ...ROOT_ALLOWED.resource.gatehouse_public_key.ana, provider: "gatehouse.own" };
      await plan({
        provider: {
          gatehouse: [
            { url: url(), tenant: fleet.tenant },
            { ...own, url: url() },
          ],
        },
        resource: { gatehouse_public_key: { ana: key } },
      });
      const { code, stdout } = await run("review", root.folder, "--json");
      const review = JSON.parse(stdout);
      expect([code, review.preflightFailures]).toEqual([2, []]);
      expect(review.notEvaluated).toEqual([
        expect.stringContaining(`the namespace ${tenantId} could not be read`),
      ]);
    });
  });

  it("in JSON is distinguished from other files", async () => {
    const of = async (text: string) => {
      writeFileSync(planFile, text);
      return run("review", root.folder);
    };
    expect((await of("PK\u0003\u0004")).stderr).toContain(
      "is a saved plan, which only Terraform or OpenTofu can read",
    );
    expect((await of('{"meta":{},"encrypted_data":"a","encryption_version":"v0"}')).stderr).toContain(
      "is an encrypted file of OpenTofu",
    );
    for (const text of ["{", `{"a":${"[".repeat(5_000_000)}${"]".repeat(5_000_000)}}`]) {
      expect((await of(text)).stderr).toContain("it is not JSON. Create the file with: terraform show -json");
    }
    expect((await of('{"format_version":"7.0"}')).stderr).toContain("format_version must be 1.x");
    expect(await of('{"format_version":"1.0"}')).toMatchObject({ code: 1 });
    root.write(estate("^root$"));
    await root.apply();
    const state = await root.must("show", "-json");
    expect(await of(state)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("is a state, not a plan"),
    });
    const schemas = await root.must("providers", "schema", "-json");
    expect(await of(schemas)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("schemas of providers"),
    });
    await root.must("destroy", "-auto-approve");
    const { code, stderr } = await gatehouse(
      ["review", "--terraform", join(root.folder, "none.json")],
      fleet.env,
    );
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining("none.json: it does not exist. Correct the path."),
    ]);
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
    expect((await run("review", root.folder, "--stack", "x")).stderr).toContain("cannot be used with");
  });
});
