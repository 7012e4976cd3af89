import { execFile, spawn } from "node:child_process";
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
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Fleet, startFleet } from "../support/fleet.ts";
import { isNoSettings } from "../support/gatehouse.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const PACKAGES = ["sdk", "provider", "server"];
const MINUTE = 60_000;

/** What was fetched before is taken as it is, and an answer that does not come is asked for again. */
const INSTALL =
  "install --no-audit --no-fund --foreground-scripts --prefer-offline --fetch-timeout=30000".split(" ");

const run = promisify(execFile);
let folder: string;
let fleet: Fleet;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "gatehouse-install-"));
  fleet = await startFleet(["carla"]);
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await fleet.stop();
});

// As a user's: `npm test` hands its own settings on, scripts that are ignored among them.
const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name)));
const npm = (args: readonly string[], cwd: string) =>
  run("npm", args, { cwd, env, maxBuffer: 64 * 1024 * 1024 });

/** Packs a workspace as a release would; answers the tarball's file. */
async function pack(name: string): Promise<string> {
  const { stdout } = await npm(["pack", "--json", "--pack-destination", folder], join(ROOT, name));
  const [{ filename, files }] = JSON.parse(stdout) as [{ filename: string; files: { path: string }[] }];
  expect(files.map(({ path }) => path)).toEqual(expect.arrayContaining(["LICENSE", "README.md"]));
  return join(folder, filename);
}

it("the packages install elsewhere, without compiling, and run an example", {
  timeout: 5 * MINUTE,
}, async ({ skip }) => {
  const tarballs = await Promise.all(PACKAGES.map(pack));
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
  try {
    await npm(INSTALL, project);
  } catch (error) {
    const text = String((error as { stderr?: string }).stderr ?? error);
    if (/E(NOTFOUND|AI_AGAIN|CONNREFUSED|TIMEDOUT|NETUNREACH)/.test(text)) skip("npm reaches no registry");
    throw error;
  }
  const seconds = (Date.now() - started) / 1000;
  const sizes = tarballs.map(
    (file, index) => `${PACKAGES[index]} ${Math.round(statSync(file).size / 1024)} KiB`,
  );
  // Told, and no more: the network has its part in it.
  console.log(`packed: ${sizes.join(", ")}; installed in ${seconds.toFixed(0)} s`);
  // What was compiled here would have left its object files.
  const built = readdirSync(join(project, "node_modules"), { recursive: true, encoding: "utf8" });
  expect(built.filter((file) => /(^|\/)(obj\.target|build\/Release\/\.deps)(\/|$)/.test(file))).toEqual([]);

  for (const name of ["edge-01", "edge-02", "web-01"]) await fleet.enrol(name);
  await fleet.enrol("gate-old", "02:00:00:00:0a:01");
  const settings = {
    ...env,
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
  expect((await gatehouse("drift")).stdout).toMatch(/as in the state/);
  await gatehouse("destroy", "--yes");
});

it("the packed server starts from there", { timeout: MINUTE }, async ({ skip }) => {
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
