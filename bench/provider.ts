// What the provider and the service cost beside a program that does nothing: `npm run bench:provider [-- N …]`.
// Each command is run with public keys of a real service and with as many resources that do nothing, in turn.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { sshKeyLine } from "../test/provider/support/programs.ts";
import { type Fleet, startFleet } from "../test/support/fleet.ts";
import { coreTimeOf } from "./server/process.ts";
import { peakOf, type Usage, watchUsage } from "./usage.ts";

const COMMAND = fileURLToPath(new URL("../provider/bin/gatehouse.js", import.meta.url));
const PROGRAM = fileURLToPath(new URL("./programs/keys", import.meta.url));
const STACK = "bench";

/** What is run, in this order on one state. */
const RUNS = [
  ["first up", ["up", "--yes"]],
  ["no-op up", ["up", "--yes"]],
  ["preview", ["preview"]],
  // The do-nothing program has the keys beside it, which are none of its own.
  ["drift", ["drift", "--unmanaged", "ignore"]],
  ["up --refresh", ["up", "--yes", "--refresh"]],
  ["destroy", ["destroy", "--yes"]],
] as const;
const KINDS = ["gatehouse", "nothing"] as const;
type Kind = (typeof KINDS)[number];

interface Measured extends Usage {
  readonly seconds: number;
  /** To the service. */
  readonly requests: number;
  /** Seconds of cores that the service has used meanwhile. */
  readonly serviceSeconds: number;
}

async function run(
  args: readonly string[],
  folder: string,
  env: Record<string, string>,
): Promise<Omit<Measured, "requests" | "serviceSeconds">> {
  const started = performance.now();
  const [command = "", ...flags] = args;
  const child = spawn(
    process.execPath,
    [COMMAND, command, PROGRAM, "--stack", STACK, "--engine", "embedded", "--json", ...flags],
    {
      env: {
        ...process.env,
        PULUMI_BACKEND_URL: `file://${folder}`,
        PULUMI_CONFIG_PASSPHRASE: "bench",
        ...env,
      },
      stdio: ["ignore", "ignore", "pipe"],
    },
  );
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  const used = watchUsage(child.pid ?? 0);
  const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
  const usage = used();
  if (code !== 0) throw new Error(`gatehouse ${args.join(" ")} ended with ${code}: ${errors}`);
  return { ...usage, seconds: (performance.now() - started) / 1000 };
}

async function measure(count: number): Promise<string[]> {
  const fleet: Fleet = await startFleet();
  const folder = mkdtempSync(join(tmpdir(), "gatehouse-bench-"));
  try {
    const keys = join(folder, "keys");
    writeFileSync(keys, Array.from({ length: count }, (_, index) => sshKeyLine(`${index}`)).join("\n"));
    const folders = Object.fromEntries(KINDS.map((kind) => [kind, mkdtempSync(join(folder, kind))]));
    const lines: string[] = [];
    for (const [name, args] of RUNS) {
      const measured = {} as Record<Kind, Measured>;
      for (const kind of KINDS) {
        const before = serviceOf(fleet);
        const result = await run(args, folders[kind] ?? "", { ...fleet.env, KIND: kind, KEYS: keys });
        await new Promise((resolve) => setTimeout(resolve, 200));
        const after = serviceOf(fleet);
        measured[kind] = {
          ...result,
          requests: after.requests - before.requests,
          serviceSeconds: after.seconds - before.seconds,
        };
      }
      lines.push(row(count, name, measured, stateBytes(folders, count), fleet));
      console.log(lines.at(-1));
    }
    return lines;
  } finally {
    rmSync(folder, { recursive: true, force: true });
    rmSync(join(PROGRAM, `Pulumi.${STACK}.yaml`), { force: true });
    await fleet.stop();
  }
}

/** The requests that the service has answered so far, and the seconds of cores that it has used. */
const serviceOf = ({ service }: Fleet) => ({
  requests: service.logs().filter((line) => line.msg === "request").length,
  seconds: coreTimeOf(service.pid) / 1000,
});

function stateBytes(folders: Record<string, string>, count: number): string {
  const size = (kind: Kind) => {
    const file = join(folders[kind] ?? "", ".pulumi", "stacks", "bench-keys", `${STACK}.json`);
    return Math.round(readFileSync(file).length / count);
  };
  return `${size("gatehouse")} / ${size("nothing")}`;
}

function row(
  count: number,
  name: string,
  { gatehouse, nothing }: Record<Kind, Measured>,
  bytes: string,
  fleet: Fleet,
): string {
  const cells = [
    count.toLocaleString("en"),
    name,
    `${gatehouse.seconds.toFixed(1)} / ${nothing.seconds.toFixed(1)}`,
    (gatehouse.seconds / nothing.seconds).toFixed(2),
    `${gatehouse.coreSeconds.toFixed(1)} / ${nothing.coreSeconds.toFixed(1)}`,
    gatehouse.serviceSeconds.toFixed(1),
    gatehouse.requests,
    `${gatehouse.megabytes} / ${nothing.megabytes}`,
    Math.round(peakOf(fleet.service.pid) / 1000),
    bytes,
    (loadavg()[0] ?? 0).toFixed(1),
  ];
  return `| ${cells.join(" | ")} |`;
}

const sizes = process.argv.slice(2).map(Number);
if (sizes.some((size) => !Number.isInteger(size) || size < 1)) {
  console.error(
    "Usage: npm run bench:provider [-- N …], N being numbers of resources; default: 100 1000 10000",
  );
  process.exit(2);
}
console.log(
  `Node ${process.version}; s, core s, MB and state bytes: Gatehouse / do-nothing. Core s, MB: sum of all processes of the command.\n`,
);
console.log(
  "| N | run | s | ratio | core s | core s of the service | requests | MB | MB of the service | state bytes each | load |",
);
console.log("|---|---|---|---|---|---|---|---|---|---|---|");
for (const size of sizes.length > 0 ? sizes : [100, 1000, 10_000]) await measure(size);
