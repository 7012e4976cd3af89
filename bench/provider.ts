// Compares the provider and the service with resources that do nothing: `npm run bench:provider [-- N …]`. Each
// command runs with public keys of a real service and with the same number of do-nothing resources, in turn.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { sshKeyLine } from "../test/provider/support/programs.ts";
import { type Fleet, startFleet } from "../test/support/fleet.ts";
import { coreTimeOf, memoryOf, watchUsage } from "./measuring.ts";
import { grouped, load, Report } from "./report.ts";

const COMMAND = fileURLToPath(new URL("../provider/bin/gatehouse.js", import.meta.url));
const PROGRAM = fileURLToPath(new URL("./programs/keys", import.meta.url));
const STACK = "bench";

/** The measured commands. They run in this order on one state. */
const RUNS = [
  ["first up", ["up", "--yes"]],
  ["no-op up", ["up", "--yes"]],
  ["preview", ["preview"]],
  // The keys in the namespace are unmanaged in the program of do-nothing resources, so `drift` must ignore unmanaged
  // keys.
  ["drift", ["drift", "--unmanaged", "ignore"]],
  ["up --refresh", ["up", "--yes", "--refresh"]],
  ["destroy", ["destroy", "--yes"]],
] as const;

/** Runs a command until it exits. Returns the resource usage of the command and of the service. */
async function run(
  { service, env }: Fleet,
  [command = "", ...flags]: readonly string[],
  backend: string,
  more: Readonly<Record<string, string>>,
) {
  const requests = () => service.logs().filter(({ msg }) => msg === "request").length;
  const before = { requests: requests(), core: coreTimeOf(service.pid) };
  const started = performance.now();
  const child = spawn(
    process.execPath,
    [COMMAND, command, PROGRAM, "--stack", STACK, "--engine", "embedded", "--json", ...flags],
    {
      env: {
        ...process.env,
        PULUMI_BACKEND_URL: `file://${backend}`,
        PULUMI_CONFIG_PASSPHRASE: "bench",
        ...env,
        ...more,
      },
      stdio: ["ignore", "ignore", "pipe"],
    },
  );
  const usageOf = watchUsage(child.pid ?? 0);
  const [errors, [code]] = await Promise.all([text(child.stderr), once(child, "close")]);
  const usage = usageOf();
  const seconds = (performance.now() - started) / 1000;
  if (code !== 0) throw new Error(`gatehouse ${command} ${flags.join(" ")} ended with ${code}: ${errors}`);
  await sleep(200);
  const serviceSeconds = (coreTimeOf(service.pid) - before.core) / 1000;
  return { ...usage, seconds, requests: requests() - before.requests, serviceSeconds };
}

async function measure(report: Report, count: number): Promise<void> {
  const fleet = await startFleet();
  const folder = mkdtempSync(join(tmpdir(), "gatehouse-bench-"));
  try {
    const keys = join(folder, "keys");
    writeFileSync(keys, Array.from({ length: count }, (_, index) => sshKeyLine(`${index}`)).join("\n"));
    const backendOf = (kind: string) => join(folder, kind);
    const stateBytes = (kind: string) => {
      const file = join(backendOf(kind), ".pulumi", "stacks", "bench-keys", `${STACK}.json`);
      return Math.round(readFileSync(file).length / count);
    };
    for (const kind of ["gatehouse", "nothing"]) mkdirSync(backendOf(kind));
    for (const [name, args] of RUNS) {
      const runAs = (kind: string) => run(fleet, args, backendOf(kind), { KIND: kind, KEYS: keys });
      const [gatehouse, nothing] = [await runAs("gatehouse"), await runAs("nothing")];
      report.row(
        grouped(count),
        name,
        `${gatehouse.seconds.toFixed(1)} / ${nothing.seconds.toFixed(1)}`,
        (gatehouse.seconds / nothing.seconds).toFixed(2),
        `${gatehouse.coreSeconds.toFixed(1)} / ${nothing.coreSeconds.toFixed(1)}`,
        gatehouse.serviceSeconds.toFixed(1),
        gatehouse.requests,
        `${gatehouse.megabytes} / ${nothing.megabytes}`,
        Math.round(memoryOf(fleet.service.pid, "peak")),
        `${stateBytes("gatehouse")} / ${stateBytes("nothing")}`,
        load(),
      );
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
    rmSync(join(PROGRAM, `Pulumi.${STACK}.yaml`), { force: true });
    await fleet.stop();
  }
}

const sizes = process.argv.slice(2).map(Number);
if (sizes.some((size) => !Number.isInteger(size) || size < 1)) {
  console.error(
    "Usage: npm run bench:provider [-- N …], where N is a number of resources; default: 100 1000 10000",
  );
  process.exit(2);
}
const report = new Report();
report.print(
  `Node ${process.version}; s, CPU s, MB and state bytes: Gatehouse / do-nothing. CPU s, MB: sum of all processes of the command.\n`,
);
report.print(
  "| N | run | s | ratio | CPU s | CPU s of the service | requests | MB | MB of the service | state bytes each | load |",
);
report.print("|---|---|---|---|---|---|---|---|---|---|---|");
for (const size of sizes.length > 0 ? sizes : [100, 1000, 10_000]) await measure(report, size);
