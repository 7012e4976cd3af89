import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { codeBlocks } from "../../provider/providers/generate/exampleOf.ts";
import { allResources, CHANGE_STEPS, changedResources, withoutMembers } from "../support/allResources.ts";
import { type Fleet, startFleet } from "../support/fleet.ts";
import { changesOf, Stack } from "../support/gatehouse.ts";
import { ownDefinitions } from "../support/ownDefinitions.ts";
import { firewallRule, type Policy, policyEnv } from "../support/policy.ts";
import { PolicyProgram } from "../support/policyProgram.ts";
import { requestsDuring } from "../support/requests.ts";
import { isOnPath, linkModules, Machine, MODULES, requiring, run } from "./support/cli.ts";

const EXAMPLES = fileURLToPath(new URL("../../examples/plugin", import.meta.url));
const SCHEMA = fileURLToPath(new URL("../../provider/schemas/pulumi.json", import.meta.url));

/** Returns the first code block in one language from the page about the plugin. */
function blockOf(language: string): string {
  const page = readFileSync(fileURLToPath(new URL("../../docs/guides/plugin.md", import.meta.url)), "utf8");
  return new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, "ms").exec(page)?.[1] ?? "";
}

const [title, available] = requiring("the plugin under the Pulumi CLI", "pulumi");

/** True for requests that change the service. */
const isWrite = (request: string) => !/^(GET|HEAD) /.test(request) && request !== "POST /api/login";

describe.runIf(available)(title, { tags: ["long"], timeout: 600_000 }, () => {
  let machine: Machine;
  let fleet: Fleet;
  beforeAll(async () => {
    machine = new Machine();
    await machine.install();
    fleet = await startFleet(["bob"]);
    for (const name of ["web-01", "web-02", "web-03"]) await fleet.enroll(name);
    await fleet.enroll("gatekeeper", "02:00:00:00:bb:01");
    const uid = await fleet.enroll("anchor");
    await fleet.client.updateDeviceTags({ params: { uid }, body: { tags: ["zone1"] } });
  });
  afterAll(async () => {
    await fleet?.stop();
    machine?.remove();
  });

  it("returns the committed schema, which is valid", async () => {
    await machine.pulumi(["schema", "check", SCHEMA]);
    const { stdout } = await machine.pulumi(["package", "get-schema", "gatehouse"]);
    expect(JSON.parse(stdout)).toEqual(JSON.parse(readFileSync(SCHEMA, "utf8")));
  });

  const [converted, canConvert] = requiring("converts the examples", "pulumi-converter-yaml");
  it.runIf(canConvert)(converted, async () => {
    const languages = [
      { language: "typescript", host: "nodejs", program: "index.ts" },
      { language: "python", host: "python", program: "__main__.py" },
      { language: "go", host: "go", program: "main.go" },
      { language: "csharp", host: "dotnet", program: "Program.cs" },
      { language: "java", host: "java", program: "src/main/java/generated_program/App.java" },
    ].filter(({ host }) => isOnPath(`pulumi-language-${host}`));
    for (const file of readdirSync(EXAMPLES)) {
      const page = readFileSync(join(EXAMPLES, file), "utf8");
      const blocks = codeBlocks(page);
      const from = machine.folder(`examples/${file}`, {
        "Pulumi.yaml": `name: example\nruntime: yaml\n${blocks.yaml}\n`,
      });
      for (const { language, program } of languages) {
        const out = join(from, language);
        const words = ["convert", "--from", "yaml", "--language", language, "--out", out, "--generate-only"];
        await machine.pulumi(words, { cwd: from });
        blocks[language] = readFileSync(join(out, program), "utf8").trim();
      }
      const [heading] = page.split("\n");
      const texts = Object.entries(blocks).map(([language, text]) => `\`\`\`${language}\n${text}\n\`\`\`\n`);
      // `vitest --update` replaces the expected text with the output of the installed CLI.
      await expect(`${heading}\n\n${texts.join("\n")}`).toMatchFileSnapshot(join(EXAMPLES, file));
    }
  });

  describe("in a program with the SDK for Node.js", () => {
    let program: PolicyProgram;
    let stack: Stack;
    let classes: string;
    beforeEach(async () => {
      classes = await machine.classes();
      program = new PolicyProgram();
      const env = { ...fleet.env, ...machine.env };
      stack = new Stack({ program: program.folder, folder: program.states, engine: "cli", env });
    });
    afterEach(() => program.remove());

    const byPlugin = (policy: Policy) => ({ ...policyEnv(policy), CLASSES: classes });
    const NOTHING_LEFT = { trials: [], rules: [], keys: [], apiKeys: [] };
    /** Returns the changes that a preview plans. */
    const planned = async (env: Record<string, string>) => changesOf(await stack.result(["preview"], env));
    const left = async () => ({
      trials: (await fleet.client.getNamespaces({ query: {} })).filter(({ name }) => name === "trials"),
      rules: await fleet.client.getFirewallRules(),
      keys: await fleet.client.getPublicKeys(),
      apiKeys: await fleet.client.listApiKeys(),
    });

    it("creates all resources, changes them as planned, and deletes them", async () => {
      await stack.result(["up", "--yes"], byPlugin(allResources));
      expect(await planned(byPlugin(allResources))).toEqual([]);
      const changed = byPlugin(changedResources);
      expect((await planned(changed)).map(withoutMembers).sort()).toEqual(CHANGE_STEPS);
      await stack.result(["up", "--yes", "--skip-preview"], changed);
      expect(await planned(changed)).toEqual([]);
      expect(changesOf(await stack.result(["refresh", "--yes"], changed))).toEqual([]);
      await stack.result(["destroy", "--yes"], changed);
      expect(await left()).toEqual(NOTHING_LEFT);
    });

    it("migrates dynamic resources to the plugin and back without any write", async () => {
      await stack.apply(allResources);
      const ids = async () => (await fleet.client.getFirewallRules()).map(({ id }) => id);
      const before = await ids();
      for (const env of [byPlugin(allResources), policyEnv(allResources)]) {
        const requests = await requestsDuring(fleet.service, async () => {
          expect(await planned(env)).toEqual([]);
          await stack.result(["up", "--yes", "--skip-preview"], env);
          expect(await planned(env)).toEqual([]);
          expect(changesOf(await stack.result(["refresh", "--yes"], env))).toEqual([]);
        });
        expect(requests.filter(isWrite)).toEqual([]);
      }
      expect(await ids()).toEqual(before);
      // Changes and deletes the migrated resources.
      expect((await planned(policyEnv(changedResources))).map(withoutMembers).sort()).toEqual(CHANGE_STEPS);
      await stack.result(["destroy", "--yes"], policyEnv(allResources));
      expect(await left()).toEqual(NOTHING_LEFT);
    });

    it("imports each object by id, without differences from the program", async () => {
      await stack.result(["up", "--yes", "--skip-preview"], byPlugin(allResources));
      const exported = async () => {
        const words = ["stack", "export", "--stack", stack.name];
        const { stdout } = await machine.pulumi(words, { cwd: program.folder, env: here() });
        return JSON.parse(stdout).deployment.resources as { type: string; urn: string; id: string }[];
      };
      const here = () => ({ ...fleet.env, ...byPlugin(allResources) });
      const resources = (await exported())
        .filter(({ type }) => type.startsWith("gatehouse:index:"))
        .map(({ type, urn, id }) => ({ type, name: urn.split("::").at(-1) ?? "", id }));
      expect(resources.map(({ type }) => type).sort()).toEqual(
        ownDefinitions.map(({ name }) => `gatehouse:index:${name}`).sort(),
      );
      // Deletes the stack's state, and creates the stack again, to simulate the loss of the state.
      const options = { cwd: program.folder, env: here() };
      await machine.pulumi(["stack", "rm", "--force", "--yes", stack.name], options);
      await machine.pulumi(["stack", "init", stack.name], options);
      program.write("import.json", JSON.stringify({ resources }));
      const requests = await requestsDuring(fleet.service, async () => {
        const words = ["import", "--stack", stack.name, "--yes", "--protect=false", "--file", "import.json"];
        const { stdout } = await machine.pulumi(words, options);
        for (const { type, name } of resources) {
          expect(stdout).toMatch(new RegExp(`new gatehouse\\.${type.split(":").at(-1)}\\("${name}", \\{`));
        }
        expect(await planned(byPlugin(allResources))).toEqual([]);
        expect(changesOf(await stack.result(["refresh", "--yes"], byPlugin(allResources)))).toEqual([]);
      });
      expect(requests.filter(isWrite)).toEqual([]);
      await stack.result(["destroy", "--yes"], byPlugin(allResources));
      expect(await left()).toEqual(NOTHING_LEFT);
    });
  });

  describe("with several instances of the provider in one program", () => {
    const RULE = firewallRule("deny", 5, { sourceIp: "^203" }).args;
    const PROGRAM = `
const gatehouse = require(process.env.CLASSES);
const { instances } = JSON.parse(process.env.POLICY);
const rule = ${JSON.stringify(RULE)};
const providers = Object.fromEntries(Object.entries(instances).map(([name, args]) => {
  const provider = new gatehouse.Provider(name, args);
  new gatehouse.FirewallRule("rule-" + name, rule, { provider });
  return [name, provider];
}));
new gatehouse.FirewallRule("rule", rule);
exports.tenants = Object.fromEntries(Object.entries(providers).map(([name, provider]) =>
  [name, gatehouse.getNamespaceOutput({}, { provider }).tenantId]));
`;
    let other: Fleet;
    let second: string;
    let folder: string;
    beforeAll(async () => {
      other = await startFleet();
      second = (await fleet.client.createNamespace({ body: { name: "second" } })).tenantId;
      folder = machine.folder("instances", {
        "Pulumi.yaml": "name: instances\nruntime: nodejs\n",
        "package.json": JSON.stringify({ name: "instances", private: true, main: "index.js" }),
        "index.js": PROGRAM,
      });
      linkModules(folder);
      await machine.pulumi(["stack", "init", "dev"], { cwd: folder });
    });
    afterAll(() => other?.stop());

    const up = async (instances: Record<string, unknown>, expected = 0) => {
      const classes = await machine.classes();
      const env = { ...fleet.env, CLASSES: classes, POLICY: JSON.stringify({ instances }) };
      const words = ["up", "--stack", "dev", "--yes", "--skip-preview", "--non-interactive"];
      return machine.pulumi(words, { cwd: folder, env, expected });
    };
    const rulesIn = (client: Fleet["client"], tenant: string) => client.forTenant(tenant).getFirewallRules();
    const ids = async () => ({
      first: (await rulesIn(fleet.client, fleet.tenant)).map(({ id }) => id),
      second: (await rulesIn(fleet.client, second)).map(({ id }) => id),
      elsewhere: (await other.client.getFirewallRules()).map(({ id }) => id),
    });

    it("supports one service, credential and namespace per instance", async () => {
      const { GATEHOUSE_URL: url, GATEHOUSE_USERNAME: username, GATEHOUSE_PASSWORD: password } = other.env;
      const instances = { team: { tenant: second }, elsewhere: { url, username, password } };
      await up(instances);
      const created = await ids();
      expect(Object.values(created).map((rules) => rules.length)).toEqual([1, 1, 1]);
      const outputs = await machine.pulumi(["stack", "output", "--json", "--stack", "dev"], { cwd: folder });
      expect(JSON.parse(outputs.stdout).tenants).toEqual({ team: second, elsewhere: other.tenant });

      // With another credential of the same service, up changes no object.
      const { id: key } = await other.client.createApiKey({
        body: { name: "pipeline", expiresAt: 30, role: "administrator" },
      });
      const rotated = { team: { tenant: second }, elsewhere: { url, apiKey: key } };
      await up(rotated);
      expect(await ids()).toEqual(created);

      // An instance that changes to another namespace creates new objects there.
      await up({ team: { tenant: fleet.tenant }, elsewhere: rotated.elsewhere });
      const moved = await ids();
      expect({ ...moved, first: moved.first.length }).toEqual({ ...created, first: 2, second: [] });

      // An instance that changes to another service creates new objects there.
      await up({
        team: { tenant: fleet.tenant },
        elsewhere: { url: fleet.env.GATEHOUSE_URL, tenant: second },
      });
      expect(Object.values(await ids()).map((rules) => rules.length)).toEqual([2, 1, 0]);

      // The environment contains a service address and a credential. The provider sends this credential to no other
      // service.
      const rejected = await up({ elsewhere: { url } }, 1);
      expect(rejected.stdout + rejected.stderr).toContain(
        "credential: cannot send the credential in the environment to",
      );
      const destroyed = await machine.pulumi(["destroy", "--yes", "--stack", "dev"], {
        cwd: folder,
        env: fleet.env,
      });
      expect(destroyed.code).toBe(0);
      expect(await ids()).toEqual({ first: [], second: [], elsewhere: [] });
    });
  });

  describe("in programs of other languages", () => {
    const [python, canPython] = requiring(
      "Python: runs the commands of docs/guides/plugin.md",
      "pulumi-language-python",
      "python3",
    );
    it.runIf(canPython)(python, async () => {
      const [, install, ...others] = blockOf("sh").trimEnd().split("\n");
      expect(install).toMatch(/^gatehouse pulumi install /);
      const last = others.pop() ?? "";
      const { PATH = "" } = process.env;
      const env = { ...machine.env, ...fleet.env, PATH: [join(MODULES, ".bin"), PATH].join(delimiter) };
      const cwd = join(machine.root, "fleet");
      const type = async (line: string, folder = cwd) => {
        const ended = await run("/bin/sh", ["-c", line], { cwd: folder, env });
        expect(ended.code, `${line}\n${ended.stdout}\n${ended.stderr}`).toBe(0);
        return ended.stdout;
      };
      const [make = "", ...rest] = others;
      await type(make, machine.root);
      for (const line of rest) await type(line);
      const lookups = `
import pulumi
pulumi.export("owners", gatehouse.get_members_output().members.apply(lambda all: [m.role for m in all]))
pulumi.export("later", gatehouse.get_firewall_rules_output(tenant=staging.tenant).firewall_rules)
`;
      writeFileSync(join(cwd, "__main__.py"), `${blockOf("python")}${lookups}`);
      await type(`${last} --yes`);
      await type(`${last} --yes`);
      const outputs = JSON.parse(await type("pulumi stack output --json --stack prod"));
      expect(outputs).toMatchObject({ owners: ["owner"], later: [{ action: "deny", priority: 10 }] });
      await type("pulumi preview --expect-no-changes --non-interactive --stack prod");
      await type("gatehouse drift --stack prod");
      await type("gatehouse destroy --yes --stack prod");

      // The examples match the types of the SDK.
      const inVenv = (...args: string[]) => run(join(cwd, "venv", "bin", "python"), args, { cwd });
      expect(await inVenv("-m", "pip", "install", "--quiet", "mypy")).toMatchObject({ code: 0 });
      for (const file of readdirSync(EXAMPLES).filter((name) => name.endsWith(".py"))) {
        const checked = await inVenv("-m", "mypy", "--follow-imports=silent", join(EXAMPLES, file));
        expect(checked.code, checked.stdout).toBe(0);
      }
      // Checks that the type checker rejects a wrong type. Otherwise the success of the checks above would prove
      // nothing.
      writeFileSync(join(cwd, "wrong.py"), "import pulumi_gatehouse as g\ng.Tag('x', name=3)\n");
      expect((await inVenv("-m", "mypy", "--follow-imports=silent", "wrong.py")).code).toBe(1);
    });

    const [go, canGo] = requiring(
      "Go: compiles the SDK and the examples, and runs one",
      "pulumi-language-go",
      "go",
    );
    it.runIf(canGo)(go, async () => {
      const folder = join(await machine.sdk("go"), "gatehouse");
      const module = "example.com/pulumi-gatehouse/sdk/go/gatehouse";
      const SDK = "github.com/pulumi/pulumi/sdk/v3 v3.259.0";
      writeFileSync(join(folder, "go.mod"), `module ${module}\n\ngo 1.24\n\nrequire ${SDK}\n`);
      for (const file of readdirSync(EXAMPLES).filter((name) => name.endsWith(".go"))) {
        const example = join(folder, "examples", file.replace(".go", ""));
        mkdirSync(example, { recursive: true });
        cpSync(join(EXAMPLES, file), join(example, "main.go"));
      }
      for (const words of [
        ["mod", "tidy"],
        ["build", "./..."],
      ]) {
        const ended = await run("go", words, { cwd: folder });
        expect(ended.code, ended.stderr).toBe(0);
      }

      const cwd = join(folder, "examples", "firewallRule");
      writeFileSync(join(cwd, "Pulumi.yaml"), "name: go-program\nruntime: go\n");
      const options = { cwd, env: fleet.env };
      await machine.pulumi(["stack", "init", "dev"], options);
      await machine.pulumi(["up", "--yes", "--stack", "dev"], options);
      const actions = async () => (await fleet.client.getFirewallRules()).map(({ action }) => action).sort();
      expect(await actions()).toEqual(["allow", "deny"]);
      await machine.pulumi(["preview", "--expect-no-changes", "--stack", "dev"], options);
      await machine.pulumi(["destroy", "--yes", "--stack", "dev"], options);
      expect(await actions()).toEqual([]);
    });

    it("TypeScript: the examples match the types of the SDK", async () => {
      const sdk = join(await machine.classes(), "..");
      const folder = machine.folder("typescript", {
        "tsconfig.json": JSON.stringify({
          compilerOptions: {
            strict: true,
            noEmit: true,
            module: "nodenext",
            target: "es2022",
            skipLibCheck: true,
            types: ["node"],
            paths: { "@gatehouse-access/pulumi": [join(sdk, "index.d.ts")] },
          },
          include: ["*.ts"],
        }),
        "package.json": "{}",
      });
      linkModules(folder);
      for (const file of readdirSync(EXAMPLES).filter((name) => name.endsWith(".ts"))) {
        cpSync(join(EXAMPLES, file), join(folder, file));
      }
      const compile = () => run(process.execPath, [join(MODULES, "typescript", "bin", "tsc"), "-p", folder]);
      const compiled = await compile();
      expect(compiled.code, compiled.stdout).toBe(0);
      machine.folder("typescript", {
        "wrong.ts": `import * as gatehouse from "@gatehouse-access/pulumi";\nnew gatehouse.Tag("x", { name: 3 });\n`,
      });
      expect((await compile()).stdout).toContain("wrong.ts(2");
    });

    const [yaml, canYaml] = requiring(
      "YAML: creates, refreshes and deletes a resource",
      "pulumi-language-yaml",
    );
    it.runIf(canYaml)(yaml, async () => {
      const cwd = machine.folder("yaml", {
        "Pulumi.yaml": `name: yaml-program
runtime: yaml
resources:
  rule:
    type: gatehouse:FirewallRule
    properties:
      { action: deny, priority: 5, sourceIp: ^203, username: .*, filter: { hostname: .* } }
outputs:
  rules:
    fn::invoke:
      function: gatehouse:getFirewallRules
      arguments: { tenant: "\${rule.tenant}" }
      return: firewallRules
`,
      });
      const env = fleet.env;
      await machine.pulumi(["stack", "init", "dev"], { cwd });
      await machine.pulumi(["up", "--yes", "--non-interactive"], { cwd, env });
      const { stdout } = await machine.pulumi(["stack", "output", "--json"], { cwd });
      expect(JSON.parse(stdout).rules).toMatchObject([{ action: "deny", priority: 5 }]);
      // With `--refresh`, the CLI reads each object from the service before it deletes the object.
      await machine.pulumi(["destroy", "--yes", "--refresh", "--non-interactive"], { cwd, env });
      expect(await fleet.client.getFirewallRules()).toEqual([]);
    });
  });
});
