import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type Fleet, startFleet } from "../support/fleet.ts";
import { testFolder } from "../support/folder.ts";
import { keyData } from "../support/policy.ts";
import { type HoldingProxy, type LossyProxy, startHoldingProxy, startLossyProxy } from "../support/proxy.ts";
import {
  type AttachedProvider,
  hasTerraform,
  keyArguments,
  LABEL,
  PROVIDER,
  RootModule,
  resources,
  ruleArguments,
  startProvider,
} from "./support/terraform.ts";

const KEYS = "/api/sshkeys/public-keys";

const API_KEYS = "/api/namespaces/api-key";

// Long tests start a provider for each apply.
describe.runIf(hasTerraform)(`an interrupted apply of ${LABEL}`, () => {
  let fleet: Fleet;
  let provider: AttachedProvider | undefined;
  let holding: HoldingProxy;
  let lossy: LossyProxy;
  beforeAll(async () => {
    fleet = await startFleet();
    holding = await startHoldingProxy(fleet.service.url);
    lossy = await startLossyProxy(fleet.service.url);
  });
  afterAll(async () => {
    await Promise.all([holding.stop(), lossy.stop()]);
    await fleet.stop();
  });
  afterEach(async () => {
    lossy.loseAnswers(undefined);
    await provider?.stop();
    provider = undefined;
    await fleet.clear();
  });

  /** Two keys, of which a test interrupts the creation. */
  const keys = (more: object = {}) =>
    resources({
      public_key: Object.fromEntries(
        ["a", "b"].map((name) => [name, keyArguments({ name, data: keyData(name), ...more })]),
      ),
    });
  const rule = (more: object = {}) => resources({ firewall_rule: { one: ruleArguments(more) } });
  /** Creates a root module with a new provider process, which connects to the service through this proxy. */
  const moduleAt = async ({ url }: { readonly url: string }, folder = testFolder()) => {
    const env = { ...fleet.env, GATEHOUSE_URL: url };
    provider = await startProvider(env);
    return new RootModule(folder, { ...provider.env, ...env });
  };

  it("creates an object only once if the response is lost", { tags: ["long"] }, async () => {
    const root = await moduleAt(lossy);
    for (const path of [KEYS, "/api/firewall/rules"]) {
      lossy.loseAnswer((method, sent) => method === "POST" && sent.startsWith(path));
    }
    await root.applied({ resource: { ...keys().resource, ...rule().resource } });
    expect(lossy.lost()).toBe(1);
    expect(await root.changes()).toEqual([]);
    expect(await fleet.client.getPublicKeys()).toHaveLength(2);
    expect(await fleet.client.getFirewallRules()).toHaveLength(1);
  });

  it("completes the operations that have started, and the next apply performs the remaining operations", {
    tags: ["long"],
  }, async () => {
    const root = await moduleAt(holding);
    root.write(keys());
    const request = holding.hold(`POST ${KEYS}`);
    const apply = root.start("apply", "-auto-approve", "-parallelism=1");
    await request.arrived;
    process.kill(-(apply.child.pid ?? 0), "SIGINT");
    await expect.poll(apply.output).toContain("Interrupt received");
    request.release();
    expect((await apply.ended).code).toBe(1);
    // Terraform may have started to create a second public key before it stopped. Every key that exists must be in the
    // state.
    const created = await fleet.client.getPublicKeys();
    const held = root.state().resources.flatMap(({ instances }) => instances);
    expect(held).toHaveLength(created.length);
    await provider?.stop();
    const next = await moduleAt(holding, root.folder);
    await next.apply();
    expect(await next.changes()).toEqual([]);
    expect(await fleet.client.getPublicKeys()).toHaveLength(2);
  });

  it.each([
    { kind: "key", declared: keys, request: `POST ${KEYS}`, count: 2 },
    { kind: "rule", declared: rule, request: "POST /api/firewall/rules", count: 1 },
  ])(
    "creates no second $kind after the provider is killed, and prints a remedy",
    async ({ kind, declared, request, count }) => {
      const { client } = fleet;
      const list = () => (kind === "key" ? client.getPublicKeys() : client.getFirewallRules());
      const root = await moduleAt(holding);
      root.write(declared());
      const held = holding.hold(request);
      const apply = root.start("apply", "-auto-approve", "-parallelism=1");
      await held.arrived;
      const before = (await list()).length;
      process.kill(provider?.pid ?? 0, "SIGKILL");
      held.release();
      expect((await apply.ended).code).toBe(1);
      // The service still processes the request, and creates an object that the state does not contain.
      await expect.poll(async () => (await list()).length).toBe(before + 1);
      const next = await moduleAt(holding, root.folder);
      expect(await next.rejected("apply", "-auto-approve")).toMatch(
        /already exists .* Set adopt = true to adopt it, or import it by this id/,
      );
      await next.applied(declared({ adopt: true }));
      expect(await next.changes()).toEqual([]);
      expect(await list()).toHaveLength(count);
    },
  );

  describe.each([
    ["a name", { name: "pipeline" }],
    ["a generated name", {}],
  ])("that rotates an API key with %s and gets no answer", { tags: ["long"] }, (_what, named) => {
    const apiKey = (version: number) => {
      const secret = { key_wo: randomUUID(), key_wo_version: version };
      return resources({ api_key: { one: { ...named, valid_days: 30, overlap: 1, ...secret } } });
    };
    const apiKeys = () => fleet.client.listApiKeys();
    /** Creates a root module and rotates its key, while the proxy loses all responses to one kind of request. */
    const interrupted = async (lost: string) => {
      const root = await moduleAt(lossy);
      await root.applied(apiKey(1));
      const isLost = (method: string, path: string) => method === lost && path.startsWith(API_KEYS);
      lossy.loseAnswers(isLost, isLost);
      root.write(apiKey(2));
      expect(await root.rejected("apply", "-auto-approve")).toContain("Api key");
      lossy.loseAnswers(undefined);
      expect(await apiKeys()).toHaveLength(2);
      return root;
    };

    it.each(["POST", "PATCH"])("to its %s requests: a destroy leaves no key behind", async (lost) => {
      const root = await interrupted(lost);
      await root.destroy();
      expect(await apiKeys()).toEqual([]);
    });

    it.each(["POST", "PATCH"])("to its %s requests: the next apply continues", async (lost) => {
      const root = await interrupted(lost);
      await root.apply();
      expect(await root.changes()).toEqual([]);
      // After the rotation, the old API key stays valid for the overlap period.
      expect(await apiKeys()).toHaveLength(2);
      const [{ instances: [{ attributes = {} } = {}] = [] } = {}] = root.state().resources;
      expect((await apiKeys()).map(({ name }) => name)).toContain(attributes.name);
      if ("name" in named) expect(attributes.name).toBe(named.name);
      await root.destroy();
      expect(await apiKeys()).toEqual([]);
    });
  });

  it("keeps the previous state of an object if the update fails", { tags: ["long"] }, async () => {
    const root = await moduleAt(lossy);
    await root.applied(keys());
    // A deletion of the key between the plan and the apply causes the update to fail.
    const [first] = await fleet.client.getPublicKeys();
    root.write(keys({ username: "^ana$" }));
    await root.must("plan", "-out=plan");
    await fleet.client.deletePublicKey({ params: { fingerprint: first?.fingerprint ?? "" } });
    expect(await root.rejected("apply", "plan")).toContain("no longer exists: it was deleted");
    expect(root.state().resources).toHaveLength(2);
    expect(await root.changes()).toEqual([expect.stringMatching(/: create$/)]);
    await root.must("apply", "plan");
    expect(await root.changes()).toEqual([]);
  });

  it("leaves no provider behind when Terraform is killed", { tags: ["long"] }, async () => {
    // The test starts the provider as Terraform does. A provider in debug mode would keep running by design.
    const parent = `const { spawn } = require("node:child_process");
      const child = spawn(${JSON.stringify(PROVIDER)}, { env: { ...process.env, PLUGIN_PROTOCOL_VERSIONS: "6",
        TF_PLUGIN_MAGIC_COOKIE: "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2" } });
      child.stdout.once("data", () => { process.stdout.write(String(child.pid)); process.kill(process.pid, "SIGKILL"); });
      setInterval(() => {}, 1000);`;
    let pid = 0;
    try {
      execFileSync(process.execPath, ["-e", parent], { stdio: ["ignore", "pipe", "ignore"] });
    } catch (error) {
      pid = Number(String((error as { stdout: Buffer }).stdout));
    }
    expect(pid).toBeGreaterThan(0);
    const isRunning = () => {
      try {
        process.kill(pid, 0);
        return true;
      } catch {
        return false;
      }
    };
    await expect.poll(isRunning).toBe(false);
  });
});
