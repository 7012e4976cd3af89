import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findOnPath } from "../../provider/engine/index.ts";
import type { Review } from "../../provider/review/report/review.ts";
import { sshKeyLine } from "../provider/support/programs.ts";
import { type Fleet, startFleet } from "../support/fleet.ts";
import { changesOf, Stack } from "../support/gatehouse.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

const missing = ["pulumi", "pulumi-language-yaml"].filter(
  (name) => findOnPath(name, process.env) === undefined,
);
const why = missing.length === 0 ? "" : ` (skipped: there is no ${missing.join(", and no ")} on the PATH)`;

const DATA = Object.fromEntries(["ana", "bob", "cy"].map((name) => [name, sshKeyLine(name)]));
const key = (name: string, username: string) => ({
  name,
  data: DATA[name],
  username,
  filter: { hostname: "^web-" },
});

const TESTS = `import { expect, policyTest } from "@gatehouse-access/provider/policy";
policyTest("no root login", ({ access }) => {
  expect(access).not.toAllow({ key: "ana", login: "root", device: { name: "web-01" } });
});
`;

/** A resource of the program in YAML, written as JSON, which is also YAML. */
interface Resource {
  readonly type: string;
  readonly properties: Record<string, unknown>;
  readonly options?: Record<string, unknown>;
}

// The tests share one stack. Each test continues where the previous one ended.
describe.skipIf(missing.length > 0)(
  `a YAML program with the plugin, by the Pulumi CLI${why}`,
  {
    timeout: 180_000,
    tags: ["long"],
  },
  () => {
    let root: string;
    let folder: string;
    let here: Fleet;
    let there: Fleet;
    let stack: Stack;
    let branch: string;

    const instance = (fleet: Fleet, more: Record<string, unknown> = {}): Resource => ({
      type: "pulumi:providers:gatehouse",
      properties: {
        url: fleet.env.GATEHOUSE_URL,
        username: "admin",
        password: fleet.env.GATEHOUSE_PASSWORD,
        ...more,
      },
    });
    const publicKey = (properties: Resource["properties"], provider?: string): Resource => ({
      type: "gatehouse:PublicKey",
      properties,
      ...(provider !== undefined && { options: { provider: `\${${provider}}` } }),
    });
    const declare = (resources: Record<string, Resource>) =>
      writeFileSync(
        join(folder, "Pulumi.yaml"),
        JSON.stringify({ name: "by-plugin", runtime: "yaml", resources }),
      );
    const both = (login: string) => ({
      ana: publicKey(key("ana", `^${login}$`)),
      elsewhere: instance(there),
      "ana-elsewhere": publicKey(key("ana", `^${login}$`), "elsewhere"),
    });
    const review = async (args: readonly string[] = [], code = 0) => {
      const run = await stack.run(["review", "--json", ...args]);
      expect([run.code, run.stderr]).toEqual([code, expect.any(String)]);
      return JSON.parse(run.stdout) as Review;
    };
    const loginsIn = async ({ client }: Fleet) =>
      (await client.getPublicKeys()).map(({ name, username }) => `${name} ${username}`).sort();
    const skipped = () =>
      `PublicKey "ana-elsewhere": not evaluated, since it is on another service (${there.env.GATEHOUSE_URL})`;

    beforeAll(async () => {
      root = mkdtempSync(join(tmpdir(), "gatehouse-plugin-"));
      folder = join(root, "program");
      for (const name of ["program", "bin", "home", "states"]) mkdirSync(join(root, name));
      symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
      symlinkSync(
        join(ROOT, "provider/bin/pulumi-resource-gatehouse.js"),
        join(root, "bin", "pulumi-resource-gatehouse"),
      );
      [here, there] = await Promise.all([startFleet(), startFleet()]);
      await here.enroll("web-01");
      await here.client.createPublicKey({
        body: { ...key("bob", "^bob$"), data: Buffer.from(`${DATA.bob}`).toString("base64") },
      });
      const { GATEHOUSE_URL = "", GATEHOUSE_USERNAME = "", GATEHOUSE_PASSWORD = "" } = here.env;
      // The stack's configuration sets the service of the default provider instance only.
      writeFileSync(join(folder, "Pulumi.test.yaml"), `config:\n  gatehouse:url: ${GATEHOUSE_URL}\n`);
      stack = new Stack({
        program: folder,
        folder: join(root, "states"),
        engine: "cli",
        name: "test",
        env: {
          GATEHOUSE_USERNAME,
          GATEHOUSE_PASSWORD,
          PULUMI_HOME: join(root, "home"),
          PATH: [join(root, "bin"), process.env.PATH].join(delimiter),
        },
      });
      declare({});
      await stack.result(["preview", "--create", "--offline"]);
    });
    afterAll(async () => {
      if (root) rmSync(root, { recursive: true, force: true });
      await Promise.all([here?.stop(), there?.stop()]);
    });

    it("is reviewed for one service, and the review lists the omitted resources of another service", async () => {
      declare(both("deploy"));
      const { namespaces, unknown, changes } = await review();
      expect(namespaces.map(({ tenant }) => tenant)).toEqual([here.tenant]);
      expect(namespaces[0]?.access).toMatchObject([
        { change: "gained", keys: [{ name: "ana" }], logins: ["deploy"] },
      ]);
      expect(unknown).toEqual([skipped()]);
      expect(changes.map(({ op, name }) => `${op} ${name}`).sort()).toEqual([
        "create ana",
        "create ana-elsewhere",
        "create by-plugin-test",
        "create elsewhere",
      ]);
    });

    it("is applied to both services, and adopts existing objects", async () => {
      declare({ ...both("deploy"), bob: publicKey({ ...key("bob", "^bob$"), adopt: true }) });
      const { summary } = await stack.result(["up", "--yes"]);
      expect(summary).toMatchObject({ create: 4, import: 1 });
      expect(await loginsIn(here)).toEqual(["ana ^deploy$", "bob ^bob$"]);
      expect(await loginsIn(there)).toEqual(["ana ^deploy$"]);
      // The provider instance for the other service must not have this service's namespace in its stored inputs.
      const state = JSON.parse(stack.stateText("by-plugin")) as {
        checkpoint: { latest: { resources: { urn: string; inputs?: Record<string, unknown> }[] } };
      };
      const instances = state.checkpoint.latest.resources.filter(({ urn }) => urn.endsWith("::elsewhere"));
      expect(instances.map(({ inputs }) => inputs?.tenant)).toEqual([undefined]);
    });

    it("has no further changes, and no unmanaged object", async () => {
      expect(changesOf(await stack.result(["up", "--yes"]))).toEqual([]);
      const [namespace] = (await review()).namespaces;
      expect(namespace?.coverage).toMatchObject({ managed: 2, total: 2 });
      expect(namespace?.access).toEqual([]);
    });

    it("is refreshed and repaired after drift", async () => {
      const [ana] = (await here.client.getPublicKeys()).filter(({ name }) => name === "ana");
      const change = (username: string) =>
        here.client.updatePublicKey({
          params: { fingerprint: `${ana?.fingerprint}` },
          body: { name: "ana", username, filter: { hostname: "^web-" } },
        });
      await change("^root$");
      expect(changesOf(await stack.result(["drift"], {}, 2))).toEqual(["update ana username"]);
      expect(changesOf(await stack.result(["up", "--yes", "--refresh"]))).toEqual(["update ana username"]);
      await change("^ops$");
      expect(changesOf(await stack.result(["refresh", "--yes"]))).toEqual(["update ana username"]);
      expect(changesOf(await stack.result(["up", "--yes"]))).toEqual(["update ana username"]);
      expect(await loginsIn(here)).toEqual(["ana ^deploy$", "bob ^bob$"]);
    });

    it("passes policy tests on the live state and on the planned state", async () => {
      writeFileSync(join(folder, "access.policy.ts"), TESTS);
      expect((await stack.run(["test"])).code).toBe(0);
      declare({ ...both("root"), bob: publicKey(key("bob", "^bob$")) });
      const run = await stack.run(["preview"]);
      expect(run.code).toBe(2);
      expect(run.stdout).toContain("FAIL  no root login");
      expect(run.stdout).toContain(`unknown: ${skipped()}`);
      expect((await review([], 2)).namespaces[0]?.tests).toMatchObject([{ ok: false }]);
      rmSync(join(folder, "access.policy.ts"));
    });

    it("is applied as reviewed, with each instance in its own namespace", async () => {
      branch = (await here.client.createNamespace({ body: { name: "branch" } })).tenantId;
      declare({
        ...both("ops"),
        bob: publicKey(key("bob", "^bob$")),
        branch: instance(here, { tenant: branch }),
        cy: publicKey(key("cy", "^cy$"), "branch"),
        ci: { type: "gatehouse:ApiKey", properties: { role: "observer", validDays: 30 } },
      });
      const plan = join(root, "plan.json");
      const { namespaces, unknown } = await review(["--save", plan]);
      expect(namespaces.map(({ tenant }) => tenant)).toEqual([here.tenant, branch]);
      expect(unknown).toEqual([skipped()]);
      const { summary, steps } = await stack.result(["up", "--plan", plan]);
      expect(summary).toMatchObject({ create: 3, update: 2 });
      expect(await loginsIn(here)).toEqual(["ana ^ops$", "bob ^bob$"]);
      expect(steps.find(({ name }) => name === "cy")?.id).toMatch(new RegExp(`^${branch}/`));
    });

    it("replaces selected resources, and destroys all resources", async () => {
      expect(changesOf(await stack.result(["up", "--yes", "--replace", "**::ci"]))).toEqual([
        expect.stringMatching(/^replace ci/),
      ]);
      await stack.result(["destroy", "--yes"]);
      expect([await loginsIn(here), await loginsIn(there)]).toEqual([[], []]);
    });
  },
);
