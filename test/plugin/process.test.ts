import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type grpc from "@grpc/grpc-js";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { type Fleet, startFleet } from "../support/fleet.ts";
import { gatehouse } from "../support/gatehouse.ts";
import { startEngine } from "./support/engine.ts";
import { PLUGIN, startPlugin } from "./support/pluginProcess.ts";

let home: string;
let fleet: Fleet;
beforeAll(async () => {
  fleet = await startFleet();
});
afterAll(() => fleet.stop());

const running: ChildProcess[] = [];
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "gatehouse-home-"));
});
afterEach(async () => {
  for (const child of running.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill("SIGKILL");
    await once(child, "close");
  }
  rmSync(home, { recursive: true });
});

/** Starts a plugin that ends with the test. */
async function start(args: readonly string[], env: Record<string, string> = {}, program?: string) {
  const started = await startPlugin(args, { PATH: process.env.PATH, ...env }, program);
  running.push(started.child);
  return started;
}

it("the plugin is installed in the plugin folder of the Pulumi CLI, and starts from there", {
  tags: ["long"],
}, async () => {
  const installed = await gatehouse(["pulumi", "install"], { PULUMI_HOME: home });
  expect(installed).toMatchObject({ code: 0, stderr: "" });
  const file = /^Installed .*: (.*)\n/.exec(installed.stdout)?.[1] ?? "";
  expect(file.startsWith(join(home, "plugins", "resource-gatehouse-v"))).toBe(true);
  expect(statSync(file).mode & 0o111).toBe(0o111);
  const { client } = await start(["127.0.0.1:1"], {}, file);
  const info = await client.call("getPluginInfo");
  expect(file).toContain(`resource-gatehouse-v${info.version}`);
  client.close();
  // A second installation replaces the first one, as after an update of the provider package.
  expect((await gatehouse(["pulumi", "install"], { PULUMI_HOME: home })).code).toBe(0);
});

it("the installation reports the folder in which it failed", async () => {
  const file = join(home, "file");
  writeFileSync(file, "");
  const failed = await gatehouse(["pulumi", "install"], { PULUMI_HOME: file });
  expect(failed).toMatchObject({ code: 1, stdout: "" });
  expect(failed.stderr).toMatch(
    /^error: Cannot write .*file.*: a part of the path is a file, not a folder\. Set PULUMI_HOME to another folder\. \[install\]\n$/,
  );
});

it("the plugin sends its log messages to the engine, and exits after the engine ends", {
  tags: ["long"],
}, async () => {
  const engine = await startEngine();
  const { child, client } = await start([engine.address], fleet.env);
  await client.call("configure");
  const rule = { action: "deny", priority: 5, sourceIp: "^203", username: ".*", filter: { hostname: ".*" } };
  const urn = "urn:pulumi:dev::project::gatehouse:index:FirewallRule::it";
  for (const properties of [rule, { ...rule, adopt: true }]) {
    await client.call("create", { urn, properties }).catch((error: grpc.ServiceError) => {
      throw new Error(error.details);
    });
  }
  await expect.poll(() => engine.messages).toHaveLength(1);
  expect(engine.messages[0]).toMatchObject({
    urn,
    message: expect.stringContaining("adopted the existing object"),
  });
  client.close();
  engine.stop();
  const [code] = await once(child, "close");
  expect(code).toBe(1);
});

it("the plugin program prints its help", async () => {
  const child = spawn(process.execPath, [PLUGIN, "--help"], { stdio: "pipe" });
  const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  expect(line).toContain("pulumi-resource-gatehouse");
});
