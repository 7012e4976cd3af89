// What others notice while strangers wear the service out: `npm run bench:attack [-- --database … --cases … --output FILE]`.
// Each case has a service to itself; a healthy client asks one request after another meanwhile.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Case, LIST, measureApi, measureGateway } from "./attack/measure.ts";
import { SSH_ATTACKS } from "./attack/sshAttacker.ts";
import { databases, names, output, readOptions, wholeNumber } from "./commandLine.ts";
import { processors, Report } from "./report.ts";
import { seed, startDatabase } from "./server/databases.ts";

const HEALTH = "/healthcheck";
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

const { database, cases, gateway, seconds, ...options } = readOptions("bench:attack", {
  database: databases,
  cases: names(Object.keys(CASES)),
  gateway: names(Object.keys(SSH_ATTACKS) as (keyof typeof SSH_ATTACKS)[]),
  seconds: wholeNumber("length of each attack", 10),
  output,
});

const report = new Report();
report.print(`# What others notice of an attack

\`npm run bench:attack\`, ${seconds} s each, on ${processors()} that the attacker shares. A healthy client asks \`${HEALTH}\` or
\`${LIST}\` meanwhile, one request after another.

| Database | Attack | median (ms) | p99 (ms) | worst (ms) | most memory (MB) | answers to the attacker |
| --- | --- | --- | --- | --- | --- | --- |`);
for (const name of database) {
  const folder = mkdtempSync(join(tmpdir(), "gatehouse-attack-"));
  const { url, stop } = await startDatabase(name, folder);
  try {
    await seed(url, ["many", "fleet"]);
    for (const one of cases.flatMap((chosen) => CASES[chosen] ?? [])) {
      const { times, megabytes, answers } = await measureApi(folder, url, one, seconds);
      const counts = Object.entries(answers).map(([status, count]) => `${count} times ${status}`);
      const figures = times.map((time) => time.toFixed(1));
      report.row(name, one.title, ...figures, Math.round(megabytes), counts.join(", ") || "–");
    }
  } finally {
    await stop();
    rmSync(folder, { recursive: true, force: true });
  }
}
if (gateway.length > 0) {
  report.print(`
# What others notice of an attack on the SSH gateway

SQLite; the attacker comes from another address. Memory: the most that the API's process and the gateway process have held.

| Attack | GET: median (ms) | p99 | worst | API (MB) | gateway (MB) | login: median (ms) | worst | failed |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |`);
  for (const attack of gateway) {
    const { get, login, api, gateway } = await measureGateway(attack, seconds);
    const times = get?.map((time) => time.toFixed(1)) ?? ["no answer", "", ""];
    const memory = [Math.round(api), Math.round(gateway) || "–"];
    const logins = [login.p50.toFixed(0), login.worst.toFixed(0), login.failed];
    report.row(SSH_ATTACKS[attack].title, ...times, ...memory, ...logins);
  }
}
report.write(options.output);
