// Compares logins through the gateway with a direct sshd: `npm run bench:gateway [-- --rounds N --held N --write]`.
// Service, agent, sshd and clients share this machine's cores. The benchmark measures both targets in turn, with the
// same client and cipher.
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { MINUTE } from "@gatehouse-access/sdk/times";
import { WebSocket } from "ws";
import { agentCall } from "../test/support/fleet.ts";
import { startSshd } from "../test/support/sshd.ts";
import {
  acceptWithKey,
  CLIENT,
  gatewayPidOf,
  newKey,
  openFolder,
  startAgent,
  startSshService,
} from "../test/support/sshFleet.ts";
import { flag, readOptions, wholeNumber } from "./commandLine.ts";
import { coreTimeOf, median, memoryOf, repeat, secondsOf } from "./measuring.ts";
import { NODE, Report, today } from "./report.ts";

const { rounds, held, write } = readOptions("bench:gateway", {
  rounds: wholeNumber("measurements of each case", 7),
  held: wholeNumber("number of open device connections; 0 skips this measurement", 10_000, 0),
  write: flag("also write the tables to bench/GATEWAY.md, as Markdown"),
});

/** Size of a file transfer, in bytes. */
const SIZE = 100_000_000;
const UNLIMITED = ["reports", "enrollments"].flatMap((what) => [`--${what}-per-address`, "0"]);

const folder = openFolder();
const key = newKey(folder.path, "key");
const fleet = await startSshService({ flags: [...UNLIMITED, "--maximum-pending-devices", "0"] });
const { service, tenant, namespace } = fleet;
const agent = await startAgent({ url: service.url, tenant, hostname: "edge-1", folder: folder.path });
await acceptWithKey(fleet, agent.uid, key);
const sshd = await startSshd(folder.path, key);
const report = new Report();

/** The SSH server and user that a client logs in to. */
interface Target {
  readonly to: string;
  readonly port: number;
}
const gateway: Target = { to: `root@${namespace}.edge-1`, port: fleet.port };

const common = ["-F", "none", ...CLIENT, "-c", "aes128-gcm@openssh.com", "-i", key];

/** Runs the OpenSSH client until it exits. The client reads its standard input from the file. */
function ssh({ to, port }: Target, args: readonly string[], input = "/dev/null"): void {
  const command = [...args.slice(0, -1), `${to}@127.0.0.1`, ...args.slice(-1)];
  const stdin = openSync(input, "r");
  execFileSync("ssh", [...common, "-p", String(port), ...command], { stdio: [stdin, "ignore", "pipe"] });
  closeSync(stdin);
}

function sftp({ to, port }: Target, line: string): void {
  const batch = join(folder.path, "batch");
  writeFileSync(batch, `${line}\n`);
  execFileSync("sftp", [...common, "-b", batch, "-P", String(port), `${to}@127.0.0.1`], { stdio: "ignore" });
}

const file = join(folder.path, "bytes");
writeFileSync(file, Buffer.alloc(SIZE, 0x61));
// The agent may run as another user, so the transferred files are in a folder that every user can write to.
const far = `/tmp/gatehouse-bench-${process.pid}`;

/** The measured cases, with the number of bytes that each case transfers. */
const CASES: readonly { readonly name: string; readonly bytes: number; run(target: Target): void }[] = [
  { name: "login and `true`", bytes: 0, run: (target) => ssh(target, ["true"]) },
  { name: "login and a shell with a terminal", bytes: 0, run: (target) => ssh(target, ["-tt", "exec true"]) },
  { name: "100 MB down", bytes: SIZE, run: (target) => ssh(target, [`head -c ${SIZE} /dev/zero`]) },
  { name: "100 MB up", bytes: SIZE, run: (target) => ssh(target, ["cat > /dev/null"], file) },
  { name: "sftp get, 100 MB", bytes: SIZE, run: (target) => sftp(target, `get ${file} ${far}-got`) },
  { name: "sftp put, 100 MB", bytes: SIZE, run: (target) => sftp(target, `put ${file} ${far}-put`) },
];

/** The process id of the agent, to measure the resource usage of the agent. */
const agentPid = Number(
  execFileSync("pgrep", ["-f", `gatehouse-agent.js run --url ${service.url}`])
    .toString()
    .split("\n")[0],
);

/** Returns the CPU time of the service and its gateway process, in milliseconds. */
const serviceCore = (): number => {
  const gatewayPid = gatewayPidOf(service);
  return coreTimeOf(service.pid) + (gatewayPid === undefined ? 0 : coreTimeOf(gatewayPid));
};

async function measure(run: () => void) {
  const before = { service: serviceCore(), agent: coreTimeOf(agentPid) };
  const seconds = await secondsOf(run);
  const [serviceMs, agentMs] = [serviceCore() - before.service, coreTimeOf(agentPid) - before.agent];
  return { seconds, serviceMs, agentMs };
}

const shown = (bytes: number, seconds: number): string =>
  bytes === 0 ? `${(seconds * 1000).toFixed(0)} ms` : `${(bytes / 1e6 / seconds).toFixed(0)} MB/s`;

async function measureCases(): Promise<void> {
  report.print(`${today()}; ${NODE}; medians of ${rounds}, in turn.\n`);
  report.print("| case | gateway | sshd | ratio | service core ms | agent core ms |");
  report.print("|---|---:|---:|---:|---:|---:|");
  for (const { name, bytes, run } of CASES) {
    const ours: Awaited<ReturnType<typeof measure>>[] = [];
    const theirs: number[] = [];
    // The first run of each case is not counted.
    for (let round = 0; round <= rounds; round += 1) {
      const measured = await measure(() => run(gateway));
      if (round > 0) ours.push(measured);
      if (sshd === undefined) continue;
      const direct = await secondsOf(() => run({ to: sshd.user, port: sshd.port }));
      if (round > 0) theirs.push(direct);
    }
    const middle = (figure: keyof (typeof ours)[number]) => median(ours.map((one) => one[figure]));
    const [seconds, direct] = [middle("seconds"), median(theirs)];
    const ratio = bytes === 0 ? seconds / direct : direct / seconds;
    const beside = sshd === undefined ? ["not available", ""] : [shown(bytes, direct), ratio.toFixed(2)];
    const cores = [middle("serviceMs").toFixed(0), middle("agentMs").toFixed(0)];
    report.row(name, shown(bytes, seconds), ...beside, ...cores);
  }
}

/** Memory of the service at its start, in megabytes. */
const fresh = memoryOf(service.pid);

/** Opens tunnels of devices, and prints the memory and CPU time that the tunnels cost the service. */
async function measureHeld(count: number): Promise<void> {
  const tokens: string[] = [];
  await repeat(count, 16, async (index) => {
    const { uid, token } = await agentCall(fleet.client, `held-${index}`, `held ${index}`, tenant);
    await fleet.client.acceptDevice({ params: { uid } });
    tokens.push(token);
  });
  const before = memoryOf(service.pid);
  const sockets: WebSocket[] = [];
  const seconds = await secondsOf(() =>
    repeat(count, 64, async (index) => {
      const socket = new WebSocket(`${service.url.replace("http", "ws")}/ssh/connection`, {
        headers: { Authorization: `Bearer ${tokens[index]}` },
        perMessageDeflate: false,
      });
      sockets.push(socket);
      await once(socket, "open");
    }),
  );
  const cores = coreTimeOf(service.pid);
  // The service checks every connection at least once within this time, so the CPU time includes these checks.
  await sleep(MINUTE);
  const used = coreTimeOf(service.pid) - cores;
  const each = (from: number) => (((memoryOf(service.pid) - from) / count) * 1000).toFixed(1);
  report.print(
    `\n${count} open device connections. Resident memory per connection: ${each(before)} kB above the value before the ` +
      `connections, ${each(fresh)} kB above the value at the start, before the enrollments (goal 30). Time to open: ` +
      `${seconds.toFixed(1)} s. Core time: ${(used / 1000).toFixed(1)} s per minute.`,
  );
  for (const socket of sockets) socket.terminate();
}

try {
  await measureCases();
  if (held > 0) await measureHeld(held);
  report.write(write ? fileURLToPath(new URL("GATEWAY.md", import.meta.url)) : undefined);
} finally {
  await agent.stop();
  sshd?.stop();
  await fleet.stop();
  folder.remove();
  execFileSync("rm", ["-f", `${far}-got`, `${far}-put`]);
}
