// Counts the modules that each of six flows executes (`npm run size -- --flows`). Examples of flows are `gatehouse up`
// and an SSH login.
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { SOURCE } from "../provider/terraform/source.ts";
import { Stack } from "../test/support/gatehouse.ts";
import { policyEnv } from "../test/support/policy.ts";
import type { TestService } from "../test/support/service.ts";
import * as fleets from "../test/support/sshFleet.ts";
import { hasTerraform, RootModule } from "../test/terraform/support/terraform.ts";
import { PACKAGES } from "./release/artifacts.ts";
import { ROOT, TERRAFORM_PROVIDER } from "./release/bundle.ts";

const SOURCES = new Set(
  execFileSync("git", ["ls-files", ...PACKAGES], { cwd: ROOT, encoding: "utf8" })
    .trim()
    .split("\n"),
);

/** The source modules that a flow, such as `gatehouse up`, loads and executes. */
class Modules {
  readonly executed = new Set<string>();
  readonly loaded = new Set<string>();

  addLoaded(url: string): string | undefined {
    if (!url.startsWith("file:")) return undefined;
    const path = relative(ROOT, fileURLToPath(url.replace(/[?#].*/, "")));
    // Converts the path of a compiled module to the path of its source. The paths differ only in `dist` and the
    // extension.
    const source = path.replace(/^(\w+)\/dist\/(.*)\.js$/, "$1/$2.ts");
    if (SOURCES.has(source)) this.loaded.add(source);
    else if (source !== path && !source.includes("/generated/"))
      throw new Error(`${path} has no tracked source: build, or add ${source} to git`);
    return SOURCES.has(source) ? source : undefined;
  }

  add({ url, functions }: ScriptCoverage): void {
    const module = this.addLoaded(url);
    const ran = functions.some(({ functionName, ranges: [range] }) => {
      const isTopLevel = functionName === "" && range?.startOffset === 0;
      return !isTopLevel && functionName !== "<static_initializer>" && (range?.count ?? 0) > 0;
    });
    if (module !== undefined && ran) this.executed.add(module);
  }
}

/** The coverage that V8 reports for a script. The first range of a function covers the complete function. */
interface ScriptCoverage {
  readonly url: string;
  readonly functions: readonly {
    readonly functionName: string;
    readonly ranges: readonly { readonly startOffset: number; readonly count: number }[];
  }[];
}

/** Code that makes a process exit normally on SIGTERM. A process that is ended by a signal writes no coverage. */
const EXIT_ON_SIGTERM = "--import=data:text/javascript,process.once('SIGTERM',()=>process.exit(143))";

/**
 * Measures which modules the Node.js processes of a flow execute. `run` must pass the given environment variables to
 * the processes.
 */
async function ofProcesses(
  folder: string,
  run: (env: Record<string, string>) => Promise<unknown>,
): Promise<Modules> {
  const reports = mkdtempSync(join(folder, "coverage-"));
  await run({ NODE_V8_COVERAGE: reports, NODE_OPTIONS: EXIT_ON_SIGTERM });
  const modules = new Modules();
  for (const name of readdirSync(reports))
    for (const script of JSON.parse(readFileSync(join(reports, name), "utf8")).result) modules.add(script);
  return modules;
}

/** A connection to the inspector of a running process. */
interface Inspector {
  start(): Promise<void>;
  addTo(modules: Modules): Promise<void>;
  close(): void;
}

/**
 * Opens the inspector of a service process. The process prints the inspector's address to the stderr of the service.
 */
async function openInspector(service: TestService, pid: number): Promise<Inspector> {
  const before = service.output().length;
  const printed = () =>
    /Debugger listening on (ws:\S+)|Starting inspector .*/.exec(service.output().slice(before));
  process.kill(pid, "SIGUSR1");
  for (let tries = 0; printed() === null && tries < 100; tries += 1) await sleep(100);
  const [line = `Process ${pid} did not open its inspector within 10 s`, address] = printed() ?? [];
  if (address === undefined) throw new Error(line);

  const socket = new WebSocket(address);
  const resolvers: ((result: never) => void)[] = [];
  const urls: string[] = [];
  socket.onmessage = ({ data }) => {
    const { id, result, method, params } = JSON.parse(data);
    if (method === "Debugger.scriptParsed") urls.push(params.url);
    else resolvers[id]?.(result as never);
  };
  await once(socket, "open");
  const send = <T>(method: string, params = {}) =>
    new Promise<T>((resolve) => {
      const id = resolvers.push(resolve) - 1;
      socket.send(JSON.stringify({ id, method, params }));
    });
  return {
    async start() {
      await send("Profiler.enable");
      await send("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
    },
    async addTo(modules) {
      const { result } = await send<{ result: ScriptCoverage[] }>("Profiler.takePreciseCoverage");
      for (const script of result) modules.add(script);
      await send("Profiler.stopPreciseCoverage");
      await send("Debugger.enable");
      for (const url of urls) modules.addLoaded(url);
      await send("Debugger.disable");
    },
    close: () => socket.close(),
  };
}

/**
 * Measures running processes while a function is called. The function is called twice, and only the second call is
 * measured.
 */
async function ofCall(inspectors: readonly Inspector[], call: () => Promise<unknown>): Promise<Modules> {
  await call();
  for (const inspector of inspectors) await inspector.start();
  await call();
  const modules = new Modules();
  for (const inspector of inspectors) await inspector.addTo(modules);
  return modules;
}

const MATCH_ALL = { username: ".*", filter: { hostname: ".*" } };
const RULE = { action: "allow", priority: 10, ...MATCH_ALL };
const PROGRAM = join(ROOT, "test", "endToEnd", "fixtures", "commonjs");

function print(flow: string, { executed, loaded }: Modules): void {
  console.log(`| ${flow} | ${executed.size} | ${loaded.size} |`);
}

/** Prints a table of the flows. */
export async function printFlows(): Promise<void> {
  const { path: folder, remove } = fleets.openFolder();
  // The inspector of the service listens on a free port. The gateway process does not receive environment variables, so
  // its inspector listens on the default port 9229.
  const fleet = await fleets.startSshService({ env: { NODE_OPTIONS: "--inspect-port=0" } });
  const { service, tenant, user } = fleet;
  const env = {
    GATEHOUSE_URL: service.url,
    GATEHOUSE_TENANT: tenant,
    GATEHOUSE_USERNAME: user.username,
    GATEHOUSE_PASSWORD: user.password,
  };
  try {
    console.log("\n| Flow | Executed modules | Loaded modules |\n|---|---:|---:|");
    await printCommands(folder, env);
    if (hasTerraform) {
      const run = (coverage: Record<string, string>) => terraformCreate(folder, { ...env, ...coverage });
      print("Terraform create", await ofProcesses(folder, run));
    } else console.error("Terraform create is not measured: terraform is not on the PATH.");
    await printCalls(folder, fleet);
  } finally {
    await fleet.stop();
    remove();
  }
}

async function printCommands(folder: string, env: Record<string, string>): Promise<void> {
  const stack = new Stack({ program: PROGRAM, folder, engine: "embedded", env, spawned: true });
  try {
    for (const [args, action] of [
      [["up", "--yes"], "allow"],
      [["review"], "deny"],
      [["drift"], "allow"],
    ] as const) {
      const policy = policyEnv({ rule: { type: "FirewallRule", args: { ...RULE, action, sourceIp: ".*" } } });
      const run = (coverage: Record<string, string>) => stack.result(args, { ...policy, ...coverage });
      print(`gatehouse ${args[0]}`, await ofProcesses(folder, run));
    }
  } finally {
    stack.dispose();
  }
}

async function printCalls(folder: string, fleet: fleets.SshService): Promise<void> {
  const { service, client, tenant, namespace, port } = fleet;
  const opened = [await openInspector(service, service.pid)];
  let agent: fleets.TestAgent | undefined;
  try {
    const keys = ["first", "second"].map((name) => fleets.publicHalf(fleets.newKey(folder, name)));
    const post = () =>
      client.createPublicKey({ body: { name: "key", data: keys.pop() ?? "", ...MATCH_ALL } });
    print("POST of a public key", await ofCall(opened, post));

    agent = await fleets.startAgent({ url: service.url, tenant, hostname: "edge-1", folder });
    const key = fleets.newKey(folder, "login");
    await fleets.acceptWithKey(fleet, agent.uid, key);
    opened.push(await openInspector(service, fleets.gatewayPidOf(service) ?? 0));
    const to = `root@${namespace}.edge-1`;
    const login = async () => {
      const { code, stderr } = await fleets.ssh({ to, port, key, command: "true" });
      if (code !== 0) throw new Error(`ssh ended with ${code}: ${stderr}`);
    };
    print("SSH login", await ofCall(opened, login));
  } finally {
    // Closes the inspectors, since a process does not exit while a debugger is connected.
    for (const inspector of opened) inspector.close();
    await agent?.stop();
  }
}

/**
 * Configures Terraform to run the provider from its unbundled modules. The coverage of a bundle does not show the
 * modules in the bundle.
 */
async function terraformCreate(folder: string, env: Record<string, string>): Promise<void> {
  const config = join(folder, "terraform.rc");
  writeFileSync(
    config,
    `provider_installation {\n  dev_overrides {\n    "${SOURCE}" = "${folder}"\n  }\n}\n`,
  );
  const main = TERRAFORM_PROVIDER.source.replace(/^import "\.(.*)\.ts";$/, join(ROOT, "provider/dist$1.js"));
  const script = `#!/bin/sh\nexec "${process.execPath}" "${main}" "$@"\n`;
  writeFileSync(join(folder, TERRAFORM_PROVIDER.name), script, { mode: 0o755 });
  const root = new RootModule(join(folder, "root"), { ...env, TF_CLI_CONFIG_FILE: config });
  const rule = { ...RULE, priority: 11, source_ip: ".*" };
  root.write({ resource: { gatehouse_firewall_rule: { rule } } });
  await root.apply();
}
