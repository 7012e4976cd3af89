// Compares the Terraform provider with resources that do nothing: `npm run bench:terraform [-- --sizes N,N,… --write]`.
// The benchmark installs the provider with the same function as `gatehouse terraform install`. The service runs on the
// same machine.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { rootCertificates } from "node:tls";
import { fileURLToPath } from "node:url";
import { packageVersion } from "../provider/packageFile.ts";
import { installProvider, mirrorText } from "../provider/terraform/installProvider.ts";
import { TERRAFORM_CLIS } from "../provider/terraform/source.ts";
import { environmentWithout } from "../test/support/command.ts";
import { startFleet } from "../test/support/fleet.ts";
import { hasTerraform, PROVIDER, RootModule } from "../test/terraform/support/terraform.ts";
import { flag, type Option, readOptions } from "./commandLine.ts";
import { median, secondsOf } from "./measuring.ts";
import { grouped, load, NODE, processors, Report, today } from "./report.ts";

/** Number of measured starts of the provider. */
const STARTS = 5;
/** Number of runs of each plan. The report contains the fastest run. */
const PLANS = 2;
/** Number of rules on a page of the service's list. */
const PAGE = 100;
/**
 * Maximum number of requests of a refresh in addition to the list pages: a login and the first requests of the
 * provider.
 */
const BESIDE = 5;

const sizes: Option<readonly number[]> = {
  value: "N,N,…",
  description: "numbers of resources to measure; default: 100,500,2000",
  read(text = "100,500,2000") {
    const given = text.split(",");
    if (!given.every((size) => /^[1-9]\d{0,5}$/.test(size)))
      throw new Error("must be whole numbers of at least 1");
    return [...new Set(given.map(Number))].sort((a, b) => a - b);
  },
};

const options = readOptions("bench:terraform", {
  sizes,
  write: flag("also write the tables to bench/TERRAFORM.md, as Markdown"),
});
if (!hasTerraform) throw new Error("terraform is not on the PATH: install it");
if (!existsSync(PROVIDER)) throw new Error("the provider is missing: run node scripts/release/bundle.ts");

/** The compared kinds of resources: firewall rules of a service, and resources that do nothing. */
type Kind = "gatehouse" | "builtin";

/** PATH for the provider's process, so that the provider runs with the same Node.js as the benchmark. */
const PATH = [dirname(process.execPath), process.env.PATH].join(delimiter);

const folder = mkdtempSync(join(tmpdir(), "gatehouse-bench-"));
const fleet = await startFleet();
const report = new Report();

const INDEX = "$" + "{count.index}";
/**
 * The attributes of each benchmark resource, a firewall rule or a do-nothing resource. Terraform replaces `count.index`
 * by the number of the resource.
 */
const INPUTS = {
  action: "allow",
  priority: INDEX,
  source_ip: `^10\\.0\\.0\\.${INDEX}$`,
  username: ".*",
};

const configurationOf = (kind: Kind, count: number) =>
  kind === "gatehouse"
    ? { resource: { gatehouse_firewall_rule: { bench: { count, ...INPUTS, filter: { hostname: ".*" } } } } }
    : // Omits `required_providers`, since Terraform starts each listed provider even if no resource needs it.
      { terraform: {}, resource: { terraform_data: { bench: { count, input: INPUTS } } } };

type Command = "plan (create)" | "apply" | "plan (no-op)" | "destroy";

/** Returns the arguments of each command, and the line that Terraform prints when the command succeeds. */
const commandsOn = (
  count: number,
): Readonly<Record<Command, readonly [args: string[], outcome: string]>> => ({
  "plan (create)": [["plan"], `Plan: ${count} to add, 0 to change, 0 to destroy.`],
  apply: [["apply", "-auto-approve"], `Apply complete! Resources: ${count} added, 0 changed, 0 destroyed.`],
  "plan (no-op)": [["plan"], "No changes. Your infrastructure matches the configuration."],
  destroy: [["destroy", "-auto-approve"], `Destroy complete! Resources: ${count} destroyed.`],
});

/** Runs a Terraform command in one root module. Returns the duration in seconds. */
type TimedModule = (command: Command) => Promise<number>;

/** Creates a root module with a number of resources of one kind, and initializes it. */
async function makeModule(
  kind: Kind,
  count: number,
  env: Readonly<Record<string, string>>,
): Promise<TimedModule> {
  const root = new RootModule(join(folder, String(count), kind), env);
  root.write(configurationOf(kind, count));
  await root.must("init", "-no-color", "-input=false");
  return async (command) => {
    const [args, outcome] = commandsOn(count)[command];
    let output = "";
    const seconds = await secondsOf(async () => {
      output = await root.must(...args, "-no-color", "-input=false");
    });
    if (output.includes(outcome)) return seconds;
    throw new Error(`terraform ${args[0]} did not print “${outcome}”:\n${output.slice(-2000)}`);
  };
}

/** Returns the methods and paths of all requests that the service has answered so far. */
async function answeredRequests(): Promise<string[]> {
  // Waits for the service's log, which arrives through a pipe.
  await sleep(200);
  const lines = fleet.service.logs().filter(({ msg }) => msg === "request");
  return lines
    .map(({ req }) => req as { readonly method: string; readonly url: string })
    .map(({ method, url }) => `${method} ${url.replace(/\?.*/, "")}`);
}

/** Durations of a command for both kinds of resources, in seconds. */
type Pair = Readonly<Record<Kind, number>>;

/** The results for one number of resources. */
interface Measured {
  readonly size: number;
  readonly apply: Pair;
  readonly noOp: Pair;
  /** Methods and paths of the requests that a plan without changes sends. */
  readonly requests: readonly string[];
}

/** Measures all commands for a number of resources. */
async function measure(size: number, env: Readonly<Record<string, string>>): Promise<Measured> {
  const own = await makeModule("gatehouse", size, { ...env, ...fleet.env });
  const other = await makeModule("builtin", size, env);
  /** Runs a command on both modules in turn. Returns the duration of the fastest run on each module. */
  const compare = async (command: Command, times: number): Promise<Pair> => {
    const pair = { gatehouse: Number.POSITIVE_INFINITY, builtin: Number.POSITIVE_INFINITY };
    for (let time = 0; time < times; time += 1) {
      pair.gatehouse = Math.min(pair.gatehouse, await own(command));
      pair.builtin = Math.min(pair.builtin, await other(command));
    }
    const { gatehouse, builtin } = pair;
    const [ratio, seconds] = [gatehouse / builtin, [gatehouse, builtin].map((one) => one.toFixed(2))];
    report.row(grouped(size), command, ...seconds, ratio.toFixed(2), load());
    return pair;
  };
  await compare("plan (create)", PLANS);
  const apply = await compare("apply", 1);
  const noOp = await compare("plan (no-op)", PLANS);
  const { length: before } = await answeredRequests();
  await own("plan (no-op)");
  const requests = (await answeredRequests()).slice(before);
  report.row(grouped(size), "destroy", (await own("destroy")).toFixed(2), "", "", load());
  return { size, apply, noOp, requests };
}

/** The variables that Terraform passes to its plugins. */
const HANDSHAKE = {
  TF_PLUGIN_MAGIC_COOKIE: "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2",
  PLUGIN_PROTOCOL_VERSIONS: "5,6",
  // The provider creates its own certificate only if it receives a client certificate. Any certificate is sufficient
  // here, since no client connects.
  PLUGIN_CLIENT_CERT: rootCertificates[0] ?? "",
  // The provider's sockets are in this temporary folder, since a killed process does not delete its socket.
  PLUGIN_UNIX_SOCKET_DIR: folder,
};

/**
 * Returns the time, in milliseconds, from the start of the provider's process to the first line of output. Terraform
 * waits for this line.
 */
async function startOf(provider: string): Promise<number> {
  const started = performance.now();
  const child = spawn(provider, [], {
    env: { ...environmentWithout("GATEHOUSE_", "TF_"), PATH, ...HANDSHAKE },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "close");
  for await (const line of createInterface({ input: child.stdout })) {
    const milliseconds = performance.now() - started;
    child.kill("SIGKILL");
    await ended;
    if (!line.startsWith("1|6|unix|")) throw new Error(`the provider printed ${line}`);
    return milliseconds;
  }
  throw new Error("the provider exited without output");
}

/**
 * Prints a table that compares the measured values with the benchmark's goals.
 * @param all the results for each number of resources, in ascending order
 */
function printGoals(start: number, all: readonly Measured[]): void {
  report.print("\n## Goals\n\n| Figure | measured | goal | met |\n|---|---:|---:|---|");
  const goal = (what: string, measured: string, limit: string, isMet: boolean) =>
    report.row(what, measured, limit, isMet ? "yes" : "no");
  goal("start of the provider, median of 5", `${Math.round(start)} ms`, "at most 500 ms", start <= 500);
  const [first, last] = [all[0], all.at(-1)];
  if (!first || !last) return;
  if (first !== last) {
    const each = (kind: Kind) => ((last.noOp[kind] - first.noOp[kind]) * 1000) / (last.size - first.size);
    const [own, other] = [each("gatehouse"), each("builtin")];
    goal(
      `one more resource in a no-op plan, from ${grouped(first.size)} to ${grouped(last.size)}`,
      `${own.toFixed(2)} / ${other.toFixed(2)} ms = ${(own / other).toFixed(2)}`,
      "ratio at most 2",
      own / other <= 2,
    );
  }
  for (const { size, apply } of all) {
    const ratio = apply.gatehouse / apply.builtin;
    goal(`apply of ${grouped(size)}`, ratio.toFixed(2), "ratio at most 1.1", ratio <= 1.1);
  }
  const { length: total } = last.requests;
  const parts = [...new Set(last.requests)].map(
    (name) => `${last.requests.filter((other) => other === name).length} × ${name}`,
  );
  const limit = Math.ceil(last.size / PAGE) + BESIDE;
  goal(
    `requests of a no-op plan of ${grouped(last.size)} (${parts.join(", ")})`,
    String(total),
    `pages of ${PAGE}: at most ${limit}`,
    total <= limit,
  );
}

try {
  const mirror = join(folder, "mirror");
  const { files } = await installProvider(process.env, [TERRAFORM_CLIS.terraform], mirror);
  const config = join(folder, "terraform.rc");
  writeFileSync(config, mirrorText(mirror));
  const terraform = JSON.parse(await new RootModule(join(folder, "none"), {}).must("version", "-json"));
  const machine = [
    today(),
    processors(),
    `Terraform ${terraform.terraform_version}`,
    `provider ${packageVersion()}`,
    NODE,
    "service on SQLite on the same machine",
  ];
  report.print(`# Cost of the Terraform provider

Written by \`npm run bench:terraform -- --write\`. The benchmark compares N firewall rules of the installed
provider with N \`terraform_data\` with the same values, in turn. Plans run twice, and the faster run counts. Other commands
run once. Load is that of the last minute; the benchmark itself adds 1 to 2.

${machine.join("; ")}.

| N | command | Gatehouse s | terraform_data s | ratio | load |
|---:|---|---:|---:|---:|---:|`);
  const starts: number[] = [];
  for (let time = 0; time < STARTS; time += 1) starts.push(await startOf(files[0]?.file ?? ""));
  const all: Measured[] = [];
  for (const size of options.sizes) {
    all.push(await measure(size, { TF_CLI_CONFIG_FILE: config, PATH }));
  }
  printGoals(median(starts), all);
  report.write(options.write ? fileURLToPath(new URL("TERRAFORM.md", import.meta.url)) : undefined);
} finally {
  await fleet.stop();
  rmSync(folder, { recursive: true, force: true });
}
