// What others notice while strangers wear the service out: `npm run bench:attack [-- --database … --cases … --output FILE]`.
// Each case has a service to itself; a healthy client asks one request after another meanwhile.
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import type { Attack, Order } from "./attack/attacker.ts";
import { GATEWAY_CASES, measureGateway } from "./attack/gateway.ts";
import { healthyTimes, timeAt } from "./attack/healthy.ts";
import type { SshAttack } from "./attack/sshAttacker.ts";
import { Printout, readCommandLine } from "./commandLine.ts";
import { benchDatabases, type DatabaseName } from "./server/database.ts";
import { PASSWORD, type Username } from "./server/namespaces.ts";
import { memoryOf, SERVICE_COMMAND, startProcess } from "./server/process.ts";
import { seed } from "./server/seed.ts";

interface Case {
  readonly title: string;
  readonly connections: number;
  /** @param token of the attacker */
  readonly attack: (token: string) => Attack;
  /** @default the healthy client's */
  readonly attacker?: Username;
  readonly env?: Readonly<Record<string, string>>;
  /** What the healthy client asks, with its token. */
  readonly healthy: string;
}

/** The user of the healthy client. */
const HEALTHY = "fleet";
const HEALTH = "/healthcheck";
const LIST = "/api/namespaces";
/** A filter that every device must be looked at for. */
const SEARCH = JSON.stringify([
  { type: "property", params: { name: "info.pretty_name", operator: "contains", value: "4242" } },
]);
const ENROLMENTS = { kind: "enrolments", namespace: "many" } as const;

const CASES: Readonly<Record<string, Case>> = {
  quiet: { title: "nobody", connections: 0, attack: () => ({ kind: "none" }), healthy: LIST },
  pipelined: {
    title: "1,800 pipelined `GET /info` on each of 100 connections",
    connections: 100,
    attack: () => ({ kind: "pipelined", path: "/info", requests: 1800, unread: false }),
    healthy: HEALTH,
  },
  unread: {
    title: "1,600 `GET /openapi.json` on each of 100 connections, whose answers nobody reads",
    connections: 100,
    attack: () => ({ kind: "pipelined", path: "/openapi.json", requests: 1600, unread: true }),
    healthy: HEALTH,
  },
  full: {
    title: "300 connections that enrol in a namespace where as many devices wait as may",
    connections: 300,
    attack: () => ENROLMENTS,
    healthy: LIST,
  },
  enrol: {
    title: "300 connections that enrol, from one address",
    connections: 300,
    attack: () => ENROLMENTS,
    env: { GATEHOUSE_MAXIMUM_PENDING_DEVICES: "0" },
    healthy: LIST,
  },
  unlimited: {
    title: "300 connections that enrol, without a limit for their address",
    connections: 300,
    attack: () => ENROLMENTS,
    env: { GATEHOUSE_MAXIMUM_PENDING_DEVICES: "0", GATEHOUSE_ENROLMENTS_PER_ADDRESS: "0" },
    healthy: LIST,
  },
  stats: {
    title: "20 callers of `GET /api/stats` with 20,000 devices",
    connections: 20,
    attack: (token) => ({ kind: "requests", path: "/api/stats", token }),
    healthy: LIST,
  },
  lists: {
    title: "16 callers of a filtered list of the 100,000 devices of another namespace",
    connections: 16,
    attack: (token) => ({
      kind: "requests",
      path: `/api/devices?filter=${encodeURIComponent(Buffer.from(SEARCH).toString("base64"))}`,
      token,
    }),
    attacker: "large",
    healthy: LIST,
  },
};

const USAGE = `Usage: npm run bench:attack [-- --database sqlite|postgresql|both --cases ${Object.keys(CASES).join(",")} --gateway ${Object.keys(GATEWAY_CASES).join(",")} --seconds N --output FILE]`;

const options = readCommandLine(
  {
    database: { type: "string", default: "both" },
    cases: { type: "string", default: Object.keys(CASES).join() },
    gateway: { type: "string", default: Object.keys(GATEWAY_CASES).join() },
    seconds: { type: "string", default: "10" },
    output: { type: "string" },
  },
  USAGE,
  ({ database = "", cases = "", gateway = "", seconds = "", output }) => {
    if (!["sqlite", "postgresql", "both"].includes(database)) return "--database is none of those";
    const [chosen, attacks] = [cases, gateway].map((names) => names.split(",").filter(Boolean)) as [
      string[],
      string[],
    ];
    if (!chosen.every((name) => name in CASES)) return "--cases has one that is none of those";
    if (!attacks.every((name) => name in GATEWAY_CASES)) return "--gateway has one that is none of those";
    if (!/^[1-9]\d*$/.test(seconds)) return "--seconds must be a whole number";
    const databases = (database === "both" ? ["sqlite", "postgresql"] : [database]) as DatabaseName[];
    return { databases, chosen, attacks: attacks as SshAttack[], seconds: Number(seconds), output };
  },
);

async function login(url: string, username: Username): Promise<string> {
  const response = await fetch(`${url}/api/login`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ username, password: PASSWORD }),
  });
  return ((await response.json()) as { token: string }).token;
}

async function measure(folder: string, databaseUrl: string, one: Case) {
  const env = { GATEHOUSE_DATABASE_URL: databaseUrl, ...one.env };
  const args = [SERVICE_COMMAND, "serve", "--data-dir", folder, "--port", "0"];
  const service = await startProcess(args, { log: join(folder, "service.log"), env });
  try {
    const token = await login(service.url, HEALTHY);
    await healthyTimes(service.url, one.healthy, token, 1);
    const attack = one.attack(await login(service.url, one.attacker ?? HEALTHY));
    const order: Order = { url: service.url, connections: one.connections, attack };
    const attacker = new Worker(new URL("./attack/attacker.ts", import.meta.url), { workerData: order });
    // From when all connections are there.
    await sleep(1000);
    let most = 0;
    const watch = setInterval(() => {
      most = Math.max(most, memoryOf(service.pid));
    }, 100);
    const times = await healthyTimes(service.url, one.healthy, token, options.seconds);
    clearInterval(watch);
    const counted = once(attacker, "message");
    attacker.postMessage("count");
    const [answers] = (await counted) as [Record<string, number>];
    await attacker.terminate();
    return { p50: timeAt(times, 0.5), p99: timeAt(times, 0.99), worst: timeAt(times, 1), most, answers };
  } finally {
    await service.stop();
  }
}

const printout = new Printout();
printout.print(`# What others notice of an attack

\`npm run bench:attack\`, ${options.seconds} s each, on ${cpus().length} cores (${cpus()[0]?.model.trim()}) that the attacker shares. A healthy client asks \`${HEALTH}\` or
\`${LIST}\` meanwhile, one request after another.

| Database | Attack | median (ms) | p99 (ms) | worst (ms) | most memory (MB) | answers to the attacker |
| --- | --- | --- | --- | --- | --- | --- |`);
for (const name of options.databases) {
  const folder = mkdtempSync(join(tmpdir(), "gatehouse-attack-"));
  const database = await benchDatabases[name].start(folder, undefined);
  try {
    await seed(name, database.url, ["many", "fleet"]);
    for (const chosen of options.chosen) {
      const one = CASES[chosen] as Case;
      const { p50, p99, worst, most, answers } = await measure(folder, database.url, one);
      const told = Object.entries(answers).map(([status, count]) => `${count} times ${status}`);
      const figures = [p50, p99, worst].map((time) => time.toFixed(1));
      printout.print(`| ${[name, one.title, ...figures, most, told.join(", ") || "–"].join(" | ")} |`);
    }
  } finally {
    await database.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}
if (options.attacks.length > 0) {
  printout.print(`
# What others notice of an attack on the SSH gateway

SQLite; the attacker comes from another address. Memory: the most that the API's process and the gateway process have held.

| Attack | GET: median (ms) | p99 | worst | API (MB) | gateway (MB) | login: median (ms) | worst | failed |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |`);
  for (const attack of options.attacks) {
    const { get, login, api, gateway } = await measureGateway(attack, options.seconds);
    const times = get ? [get.p50, get.p99, get.worst].map((time) => time.toFixed(1)) : ["no answer", "", ""];
    const logins = [login.p50.toFixed(0), login.worst.toFixed(0), login.failed];
    printout.print(`| ${[GATEWAY_CASES[attack], ...times, api, gateway ?? "–", ...logins].join(" | ")} |`);
  }
}
printout.write(options.output);
