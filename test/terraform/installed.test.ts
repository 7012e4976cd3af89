import { spawn } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { packageVersion } from "../../provider/packageFile.ts";
import { SOURCE, TERRAFORM_CLIS } from "../../provider/terraform/source.ts";
import { MINUTE } from "../../sdk/times.ts";
import { sshKeyLine } from "../provider/support/programs.ts";
import { environmentWithout } from "../support/command.ts";
import { type Fleet, startFleet } from "../support/fleet.ts";
import { testFolder } from "../support/folder.ts";
import { gatehouse } from "../support/gatehouse.ts";
import { hasTerraform, hasTofu, LABEL, RootModule, TOFU_LABEL } from "./support/terraform.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const SESSION_TOKEN = `\${ephemeral.gatehouse_session_token.here.token}`;
const JSON_WEB_TOKEN = /eyJ[\w-]+\.[\w-]+\.[\w-]+/;
const EXAMPLE = join(ROOT, "examples", "terraform", "fleet");

describe("gatehouse terraform install", () => {
  it.each([
    { onPath: [], flags: [], installed: ["Terraform", "OpenTofu"] },
    { onPath: ["terraform"], flags: [], installed: ["Terraform"] },
    { onPath: ["tofu"], flags: [], installed: ["OpenTofu"] },
    { onPath: ["terraform", "tofu"], flags: [], installed: ["Terraform", "OpenTofu"] },
    { onPath: ["tofu"], flags: ["--for", "terraform"], installed: ["Terraform"] },
    { onPath: ["terraform"], flags: ["--for", "opentofu"], installed: ["OpenTofu"] },
    { onPath: ["terraform"], flags: ["--for", "both"], installed: ["Terraform", "OpenTofu"] },
  ])(
    "installs for $installed with $onPath on the PATH and the flags $flags",
    async ({ onPath, flags, installed }) => {
      const home = testFolder();
      for (const command of onPath) writeFileSync(join(home, command), "", { mode: 0o755 });
      const { code, stdout } = await gatehouse(["terraform", "install", ...flags], {
        HOME: home,
        PATH: home,
      });
      expect(code).toBe(0);
      const programs = Object.values(TERRAFORM_CLIS).filter(({ name }) => installed.includes(name));
      const folder = join(home, ".terraform.d", "plugins");
      expect(readdirSync(folder).toSorted()).toEqual(programs.map(({ host }) => host).toSorted());
      for (const { host } of programs)
        expect(readdirSync(join(folder, host, SOURCE))).toEqual([packageVersion()]);
      expect(stdout).toContain(`Then: ${programs.map(({ command }) => `${command} init`).join(" or ")}\n`);
    },
  );

  it("reports a folder without write permission", async () => {
    const file = join(testFolder(), "file");
    writeFileSync(file, "");
    const { code, stderr } = await gatehouse(["terraform", "install", "--mirror", file]);
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^error: Cannot write .*file.*: a part of the path is a file, not a folder\. Choose another folder with --mirror\. \[install\]\n$/,
    );
  });
});

describe.runIf(hasTerraform)(`the installed provider with ${LABEL}`, () => {
  let fleet: Fleet;
  beforeAll(async () => {
    fleet = await startFleet(["ana"]);
    for (const name of ["edge-01", "edge-02", "lab-01"]) await fleet.enroll(name);
  });
  afterAll(() => fleet.stop());

  /** Returns an environment with a new home folder, in which `gatehouse` is a command. */
  function newHome(): NodeJS.ProcessEnv {
    const home = testFolder();
    const bin = join(home, "bin");
    mkdirSync(bin);
    const script = `#!/bin/sh\nexec "${process.execPath}" "${join(ROOT, "provider", "bin", "gatehouse.js")}" "$@"\n`;
    writeFileSync(join(bin, "gatehouse"), script, { mode: 0o755 });
    const path = [bin, dirname(process.execPath), process.env.PATH].join(delimiter);
    return { ...environmentWithout("GATEHOUSE_", "TF_"), HOME: home, PATH: path, TF_CLI_ARGS: "-no-color" };
  }

  /** Returns the lines of all shell code blocks in a text. */
  const linesIn = (text: string) =>
    [...text.matchAll(/^```sh\n(.*?)^```$/gms)].flatMap(([, block = ""]) => block.trim().split("\n"));

  /** Runs lines in order. Replaces the exported settings with the settings of the test's service. */
  async function type(lines: readonly string[], folder: string, before: (line: string) => Promise<void>) {
    const env = newHome();
    const { GATEHOUSE_URL, GATEHOUSE_USERNAME, GATEHOUSE_PASSWORD } = fleet.env;
    const settings = { GATEHOUSE_URL, GATEHOUSE_USERNAME, GATEHOUSE_PASSWORD };
    if (!lines.some((line) => line.startsWith("export "))) Object.assign(env, settings);
    const typed: { line: string; code: number | null; output: string }[] = [];
    for (const line of lines) {
      const [, variable = ""] = /^export (\w+)=/.exec(line) ?? [];
      await before(line);
      if (variable in settings) env[variable] = settings[variable as keyof typeof settings];
      else typed.push({ line, ...(await shell(line, folder, env)) });
    }
    return typed;
  }

  it("runs the commands of the quick start, and plans the configuration of the README", {
    tags: ["long"],
    timeout: 5 * MINUTE,
  }, async () => {
    const page = readFileSync(join(ROOT, "docs", "get-started", "quick-start.md"), "utf8");
    const section = page.split("\n## ").find((part) => part.startsWith("Terraform and OpenTofu\n")) ?? "";
    const folder = testFolder();
    const configurationIn = (text: string) => /^```terraform\n(.*?)^```$/ms.exec(text)?.[1] ?? "";
    const configuration = configurationIn(section);
    writeFileSync(join(folder, "access.tf"), configuration);
    const typed = await type(linesIn(section), folder, async () => {});
    expect(typed.map(({ code }) => code)).toEqual([0, 0, 0, 0, 0]);
    const [rule] = await fleet.client.getFirewallRules();
    expect(rule?.priority).toBe(10);
    await fleet.client.deleteFirewallRule({ params: { id: rule?.id ?? "" } });

    const readme = readFileSync(join(ROOT, "README.md"), "utf8");
    const [provider = ""] = configuration.split("\n\n");
    writeFileSync(join(folder, "access.tf"), `${provider}\n${configurationIn(readme)}`);
    mkdirSync(join(folder, "keys"));
    writeFileSync(join(folder, "keys", "ana.pub"), sshKeyLine("ana@laptop"));
    const [plan] = await type(["terraform plan"], folder, async () => {});
    expect(plan?.output).toContain("Plan: 2 to add, 0 to change, 0 to destroy.");
  });

  it("runs the commands in the README of the example", { tags: ["long"], timeout: 5 * MINUTE }, async () => {
    const folder = testFolder();
    cpSync(EXAMPLE, folder, { recursive: true });
    const drift = "terraform plan -refresh-only -detailed-exitcode";
    const lines = linesIn(readFileSync(join(folder, "README.md"), "utf8"));
    const twice = lines.flatMap((line) => (line === drift ? [drift, drift] : [line]));
    let refreshed = 0;
    const typed = await type(twice, folder, async (line) => {
      if (line !== drift) return;
      refreshed += 1;
      if (refreshed === 1) return;
      const [rule] = await fleet.client.getFirewallRules();
      await fleet.client.deleteFirewallRule({ params: { id: rule?.id ?? "" } });
    });
    const transcript = typed
      .map(({ line, code, output }) => `$ ${line}\n${output}(exit code ${code})`)
      .join("\n");
    if (process.env.TRANSCRIPT) writeFileSync(process.env.TRANSCRIPT, transcript);
    expect(typed.map(({ line, code }) => `${line}: ${code}`)).toEqual([
      "gatehouse terraform install: 0",
      "terraform init: 0",
      "terraform plan -out=plan: 0",
      "terraform show -json plan > plan.json: 0",
      "gatehouse review --terraform plan.json: 0",
      "terraform apply plan: 0",
      "terraform plan -detailed-exitcode: 0",
      "terraform plan -refresh-only -detailed-exitcode: 0",
      "terraform plan -refresh-only -detailed-exitcode: 2",
      "terraform plan -out=plan: 0",
      "terraform show -json plan > plan.json: 0",
      "gatehouse drift --terraform plan.json: 2",
      "terraform destroy -auto-approve: 0",
    ]);
    expect(transcript).toContain("key ana gains logins ana and root from ");
    expect(await fleet.client.getPublicKeys()).toEqual([]);
  });

  /** Creates a root module whose provider comes from a separate mirror. */
  async function mirrored(env: Readonly<Record<string, string>> = {}): Promise<RootModule> {
    const mirror = testFolder();
    const { stdout } = await gatehouse(["terraform", "install", "--mirror", mirror]);
    const [, configuration = ""] = /^(provider_installation \{.*?^\})/ms.exec(stdout) ?? [];
    writeFileSync(join(mirror, "terraformrc"), configuration);
    return new RootModule(testFolder(), { ...env, TF_CLI_CONFIG_FILE: join(mirror, "terraformrc") });
  }

  const rule = { action: "deny", priority: 1, source_ip: ".*", username: ".*", filter: { hostname: ".*" } };

  it("is installed from a provider mirror, and trusts only Terraform", { tags: ["long"] }, async () => {
    const root = await mirrored(fleet.env);
    root.write({ resource: { gatehouse_firewall_rule: { one: rule } } });
    expect(await root.must("init")).toContain("Installing gatehouse-access/gatehouse");
    expect(await root.changes()).toEqual(["gatehouse_firewall_rule.one: create"]);
  });

  it("accepts several configurations, and a session token that it does not store", {
    tags: ["long"],
    timeout: 5 * MINUTE,
  }, async () => {
    const root = await mirrored();
    const { tenantId } = await fleet.client.createNamespace({ body: { name: "second" } });
    const { GATEHOUSE_URL: url, GATEHOUSE_USERNAME: username, GATEHOUSE_PASSWORD: password } = fleet.env;
    const [usual, second] = [fleet.tenant, tenantId].map((tenant) => ({ url, username, password, tenant }));
    root.write({
      ephemeral: { gatehouse_session_token: { here: { provider: "gatehouse.second" } } },
      provider: {
        gatehouse: [
          usual,
          { alias: "second", ...second },
          { alias: "session", url, tenant: tenantId, token: SESSION_TOKEN },
        ],
      },
      resource: {
        gatehouse_firewall_rule: {
          first: rule,
          second: { provider: "gatehouse.second", ...rule },
          session: { provider: "gatehouse.session", ...rule, priority: 2 },
        },
      },
    });
    await root.must("init");
    await root.apply();
    expect(await root.changes()).toEqual([]);
    const of = (tenant: string) => fleet.client.forTenant(tenant).getFirewallRules();
    expect(await of(fleet.tenant)).toHaveLength(1);
    expect(await of(tenantId)).toHaveLength(2);
    const state = readFileSync(join(root.folder, "terraform.tfstate"), "utf8");
    // Private data is base64, and starts like a token without being one.
    const decoded = [...state.matchAll(/"private": "([^"]*)"/g)].map(([, data = ""]) => atob(data));
    expect(decoded).toHaveLength(3);
    for (const text of [state, ...decoded]) {
      expect(text).not.toContain(password);
      expect(text).not.toMatch(JSON_WEB_TOKEN);
    }
    await root.must("destroy", "-auto-approve");
    await fleet.client.forTenant(tenantId).deleteNamespace({ params: { tenant: tenantId } });
  });
});

describe.runIf(hasTerraform && hasTofu)(`an estate of ${LABEL} and ${TOFU_LABEL}`, () => {
  let fleet: Fleet;
  beforeAll(async () => {
    fleet = await startFleet();
    await fleet.enroll("edge-01");
  });
  afterAll(() => fleet.stop());

  it("moves from one program to the other and back with empty plans", {
    tags: ["long"],
    timeout: 5 * MINUTE,
  }, async () => {
    const home = testFolder();
    await gatehouse(["terraform", "install", "--for", "both"], { HOME: home });
    const folder = testFolder();
    const env = { ...fleet.env, HOME: home };
    const terraform = new RootModule(folder, env);
    const tofu = new RootModule(folder, env, "tofu");
    const data = sshKeyLine("ana");
    const estate = (username: string) => ({
      resource: {
        gatehouse_public_key: {
          ana: { name: "ana", data, username, filter: { hostname: "^edge-01$" } },
        },
        gatehouse_firewall_rule: {
          one: { action: "deny", priority: 1, source_ip: ".*", username, filter: { hostname: ".*" } },
        },
        gatehouse_device_tags: { edge: { device: "edge-01", tags: ["edge"] } },
      },
    });
    terraform.write(estate("^root$"));
    await terraform.must("init");
    await terraform.apply();
    await tofu.must("init");
    expect(await tofu.changes()).toEqual([]);
    tofu.write(estate("^ana$"));
    await tofu.apply();
    expect((await fleet.client.getPublicKeys()).map(({ username }) => username)).toEqual(["^ana$"]);
    await terraform.must("init");
    expect(await terraform.changes()).toEqual([]);
  });
});

async function shell(line: string, cwd: string, env: NodeJS.ProcessEnv) {
  const child = spawn("/bin/sh", ["-c", `${line} 2>&1`], { cwd, env, stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise<number | null>((resolve) => child.on("close", resolve));
  const output = await text(child.stdout);
  return { code: await ended, output };
}
