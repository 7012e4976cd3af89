import { spawn } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Fleet, startFleet } from "../support/fleet.ts";
import { isNoSettings } from "../support/gatehouse.ts";
import {
  copiesOf,
  INSTALL_FLAGS,
  npm,
  OFFLINE,
  PACKAGES,
  packAll,
  ROOT,
  reachesRegistry,
  run,
  userEnv,
} from "./packages.ts";

const MINUTE = 60_000;

let folder: string;
let fleet: Fleet;
// Packs the packages, and installs them from a registry.
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "gatehouse-install-"));
  fleet = await startFleet(["carla"]);
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await fleet.stop();
});

it("the packages install elsewhere, without compiling, and run an example", {
  timeout: 5 * MINUTE,
  tags: ["long"],
}, async ({ skip }) => {
  if (!(await reachesRegistry())) skip(OFFLINE);
  const tarballs = await packAll(folder);
  const project = join(folder, "project");
  mkdirSync(project);
  cpSync(join(ROOT, "examples", "resources"), project, { recursive: true, filter: isNoSettings });
  const dependencies = Object.fromEntries(
    tarballs.map((file, index) => [`@gatehouse-access/${PACKAGES[index]}`, `file:${file}`]),
  );
  const own = JSON.parse(readFileSync(join(project, "package.json"), "utf8"));
  const manifest = { ...own, dependencies: { ...own.dependencies, ...dependencies } };
  writeFileSync(join(project, "package.json"), JSON.stringify(manifest));

  const started = Date.now();
  await npm(["install", ...INSTALL_FLAGS], project);
  const seconds = (Date.now() - started) / 1000;
  const sizes = tarballs.map(
    (file, index) => `${PACKAGES[index]} ${Math.round(statSync(file).size / 1024)} KiB`,
  );
  // Told, and no more: the network has its part in it.
  console.log(`packed: ${sizes.join(", ")}; installed in ${seconds.toFixed(0)} s`);
  // What was compiled here would have left its object files. The SSH library compiles faster ciphers where it can, and
  // goes without them where it cannot.
  const built = readdirSync(join(project, "node_modules"), { recursive: true, encoding: "utf8" });
  const compiled = built.filter((file) => /(^|\/)(obj\.target|build\/Release\/\.deps)(\/|$)/.test(file));
  expect(compiled.filter((file) => !/^(cpu-features|ssh2)\//.test(file))).toEqual([]);

  expect(copiesOf("@pulumi/pulumi", project)).toEqual(["@pulumi/pulumi/package.json"]);

  for (const name of ["edge-01", "edge-02", "web-01"]) await fleet.enrol(name);
  await fleet.enrol("gate-old", "02:00:00:00:0a:01");
  const settings = {
    ...userEnv,
    ...fleet.env,
    PULUMI_BACKEND_URL: `file://${mkdtempSync(join(folder, "state-"))}`,
    PULUMI_CONFIG_PASSPHRASE: "install",
  };
  const command = join(project, "node_modules/.bin/gatehouse");
  const gatehouse = (...args: string[]) =>
    run(process.execPath, [command, ...args, "--stack", "s", "--engine", "embedded"], {
      cwd: project,
      env: settings,
    });
  const released = JSON.parse(readFileSync(join(ROOT, "provider/package.json"), "utf8"));
  expect((await run(process.execPath, [command, "--version"])).stdout).toBe(`${released.version}\n`);
  expect((await gatehouse("up", "--yes")).stdout).toMatch(/\d+ created/);
  expect((await gatehouse("drift")).stdout).toMatch(/as declared/);
  await gatehouse("destroy", "--yes");
});

it("the packed server starts from there", { timeout: MINUTE, tags: ["long"] }, async ({ skip }) => {
  const bin = join(folder, "project", "node_modules/.bin/gatehouse-server");
  if (!statSync(bin, { throwIfNoEntry: false })) skip("the packages are not installed");
  const data = mkdtempSync(join(folder, "data-"));
  const child = spawn(process.execPath, [bin, "serve", "--port", "0", "--data-dir", data]);
  const ended = new Promise((resolve) => child.on("close", resolve));
  const lines: string[] = [];
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      lines.push(line);
      if (line.includes('"listening"')) break;
    }
    const [, address] = /"address":"([^"]+)"/.exec(lines.at(-1) ?? "") ?? [];
    expect(address, lines.join("\n")).toBeDefined();
    // The pages are read from files when they are first asked for.
    for (const path of ["/info", "/", "/setup"]) expect((await fetch(address + path)).status, path).toBe(200);
  } finally {
    child.kill("SIGTERM");
  }
  child.stdout.resume();
  expect(await ended).toBe(0);
});
