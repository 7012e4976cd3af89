// What a login through the gateway costs beside a direct sshd: `npm run bench:gateway [-- --rounds N --held N --write]`.
// Service, agent, sshd and clients share this machine's cores; the same client and cipher for both, in turn.
import { execFileSync, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { WebSocket } from "ws";
import { startSshd } from "../test/support/sshd.ts";
import {
  acceptWithKey,
  CLIENT,
  gatewayPidOf,
  newKey,
  openFolder,
  type SshService,
  someAtATime,
  startAgent,
  startSshService,
} from "../test/support/sshFleet.ts";
import { Printout, readCommandLine } from "./commandLine.ts";
import { coreTimeOf } from "./server/process.ts";

const USAGE = `Usage: npm run bench:gateway [-- options]
  --rounds N  how often each case is measured, default 7
  --held N    connections of devices that are held, default 10000; 0: none
  --write     writes the tables, as Markdown, to bench/GATEWAY.md too`;
const { rounds, held, output } = readCommandLine(
  {
    rounds: { type: "string", default: "7" },
    held: { type: "string", default: "10000" },
    write: { type: "boolean", default: false },
  },
  USAGE,
  ({ rounds, held, write }) => {
    if (!/^[1-9]\d{0,2}$/.test(rounds)) return "--rounds must be a whole number from 1 on";
    if (!/^\d{1,5}$/.test(held)) return "--held must be a whole number of at most five digits";
    const file = fileURLToPath(new URL("GATEWAY.md", import.meta.url));
    return { rounds: Number(rounds), held: Number(held), output: write ? file : undefined };
  },
);

/** Bytes that are moved. */
const SIZE = 100_000_000;
const UNLIMITED = ["reports", "enrolments"].flatMap((what) => [`--${what}-per-address`, "0"]);

const folder = openFolder();
const key = newKey(folder.path, "key");
const fleet = await startSshService({ flags: [...UNLIMITED, "--maximum-pending-devices", "0"] });
const { service, tenant, namespace } = fleet;
const agent = await startAgent({ url: service.url, tenant, hostname: "edge-1", folder: folder.path });
await acceptWithKey(fleet, agent.uid, key);
const sshd = await startSshd(folder.path, key);
const printout = new Printout();

/** Where a client logs in. */
interface Target {
  readonly to: string;
  readonly port: number;
}
const gateway: Target = { to: `root@${namespace}.edge-1`, port: fleet.port };

const common = ["-F", "none", ...CLIENT, "-c", "aes128-gcm@openssh.com", "-i", key];

function ssh({ to, port }: Target, args: readonly string[], input?: string): void {
  const { status, stderr } = spawnSync(
    "ssh",
    [...common, "-p", String(port), ...args.slice(0, -1), `${to}@127.0.0.1`, args.at(-1) ?? ""],
    {
      stdio: [input === undefined ? "ignore" : "pipe", "ignore", "pipe"],
      ...(input !== undefined && { input }),
    },
  );
  if (status !== 0) throw new Error(`ssh ended with ${status}: ${stderr}`);
}

function sftp({ to, port }: Target, line: string): void {
  const batch = join(folder.path, "batch");
  writeFileSync(batch, `${line}\n`);
  execFileSync("sftp", [...common, "-b", batch, "-P", String(port), `${to}@127.0.0.1`], { stdio: "ignore" });
}

const file = join(folder.path, "bytes");
writeFileSync(file, Buffer.alloc(SIZE, 0x61));
// What agents write goes where everybody may.
const far = `/tmp/gatehouse-bench-${process.pid}`;

/** What is measured, and how much each moves. */
const CASES: readonly { readonly name: string; readonly bytes: number; run(target: Target): void }[] = [
  { name: "login and `true`", bytes: 0, run: (target) => ssh(target, ["true"]) },
  { name: "login and a shell with a terminal", bytes: 0, run: (target) => ssh(target, ["-tt", "exec true"]) },
  { name: "100 MB down", bytes: SIZE, run: (target) => ssh(target, [`head -c ${SIZE} /dev/zero`]) },
  {
    name: "100 MB up",
    bytes: SIZE,
    run: ({ to, port }) => {
      const line = ["ssh", ...common, "-p", String(port), `${to}@127.0.0.1`, "cat > /dev/null"];
      execFileSync("sh", ["-c", 'exec "$@" < "$FILE"', "sh", ...line], {
        env: { ...process.env, FILE: file },
        stdio: "ignore",
      });
    },
  },
  { name: "sftp get, 100 MB", bytes: SIZE, run: (target) => sftp(target, `get ${file} ${far}-got`) },
  { name: "sftp put, 100 MB", bytes: SIZE, run: (target) => sftp(target, `put ${file} ${far}-put`) },
];

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

/** The process of the agent, for what it uses. */
const agentPid = Number(
  execFileSync("pgrep", ["-f", `gatehouse-agent.js run --url ${service.url}`])
    .toString()
    .split("\n")[0],
);

/** Milliseconds of a core that the service has used, with its gateway process. */
const serviceCore = (): number => {
  const gatewayPid = gatewayPidOf(service);
  return coreTimeOf(service.pid) + (gatewayPid === undefined ? 0 : coreTimeOf(gatewayPid));
};

interface Measured {
  readonly seconds: number;
  readonly serviceMs: number;
  readonly agentMs: number;
}

function measure(run: () => void): Measured {
  const before = [serviceCore(), coreTimeOf(agentPid)] as const;
  const begun = performance.now();
  run();
  const seconds = (performance.now() - begun) / 1000;
  return {
    seconds,
    serviceMs: serviceCore() - before[0],
    agentMs: coreTimeOf(agentPid) - before[1],
  };
}

const shown = (bytes: number, seconds: number): string =>
  bytes === 0 ? `${(seconds * 1000).toFixed(0)} ms` : `${(bytes / 1e6 / seconds).toFixed(0)} MB/s`;

function measureCases(): void {
  printout.print(
    `${new Date().toISOString().slice(0, 10)}; Node ${process.version}; medians of ${rounds}, in turn.\n`,
  );
  printout.print("| case | gateway | sshd | ratio | service core ms | agent core ms |");
  printout.print("|---|---:|---:|---:|---:|---:|");
  for (const { name, bytes, run } of CASES) {
    const ours: Measured[] = [];
    const theirs: number[] = [];
    // The first of each is not counted.
    for (let round = 0; round <= rounds; round += 1) {
      const measured = measure(() => run(gateway));
      if (round > 0) ours.push(measured);
      if (sshd === undefined) continue;
      const direct = measure(() => run({ to: sshd.user, port: sshd.port })).seconds;
      if (round > 0) theirs.push(direct);
    }
    const seconds = median(ours.map((one) => one.seconds));
    const direct = median(theirs);
    const ratio = bytes === 0 ? seconds / direct : direct / seconds;
    const beside = sshd === undefined ? ["not there", ""] : [shown(bytes, direct), ratio.toFixed(2)];
    const cores = [median(ours.map((one) => one.serviceMs)), median(ours.map((one) => one.agentMs))];
    printout.print(
      `| ${[name, shown(bytes, seconds), ...beside, ...cores.map((ms) => ms.toFixed(0))].join(" | ")} |`,
    );
  }
}

/** Resident memory of the service, in bytes. */
const residentBytes = (): number =>
  1024 * Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${service.pid}/status`, "utf8"))?.[1]);

/** What the service holds before it has done much. */
const fresh = residentBytes();

/** Enrols a device that nobody serves; its token. */
async function enrol({ client, tenant }: SshService, index: number): Promise<string> {
  const { uid, token } = await client.authDevice({
    body: {
      info: { id: "debian", prettyName: "Debian", version: "v0.19.0", arch: "arm64", platform: "native" },
      hostname: `held-${index}`,
      identity: { mac: `held ${index}` },
      publicKey: `key of ${index}`,
      tenantId: tenant,
    },
  });
  await client.acceptDevice({ params: { uid } });
  return token;
}

/** Holds tunnels of devices, and tells what they cost the service. */
async function measureHeld(count: number): Promise<void> {
  const tokens: string[] = [];
  await someAtATime(
    Array.from({ length: count }, (_, index) => index),
    16,
    async (index) => void tokens.push(await enrol(fleet, index)),
  );
  const before = residentBytes();
  const sockets: WebSocket[] = [];
  const begun = performance.now();
  await someAtATime(tokens, 64, async (token) => {
    const socket = new WebSocket(`${service.url.replace("http", "ws")}/ssh/connection`, {
      headers: { Authorization: `Bearer ${token}` },
      perMessageDeflate: false,
    });
    sockets.push(socket);
    await once(socket, "open");
  });
  const seconds = (performance.now() - begun) / 1000;
  const cores = coreTimeOf(service.pid);
  // Longer than the service takes to ask each of them.
  await new Promise((resolve) => setTimeout(resolve, 60_000));
  const used = coreTimeOf(service.pid) - cores;
  const each = (from: number) => ((residentBytes() - from) / count / 1000).toFixed(1);
  printout.print(
    `\n${count} connections of devices held: ${each(before)} kB of resident memory each beside what the service held ` +
      `before, ${each(fresh)} kB beside what it held when it was new, before it enrolled them (goal 30); opened in ` +
      `${seconds.toFixed(1)} s; ${(used / 1000).toFixed(1)} s of a core in a minute.`,
  );
  for (const socket of sockets) socket.terminate();
}

try {
  measureCases();
  if (held > 0) await measureHeld(held);
  printout.write(output);
} finally {
  await agent.stop();
  sshd?.stop();
  await fleet.stop();
  folder.remove();
  execFileSync("rm", ["-f", `${far}-got`, `${far}-put`]);
}
