// Measures the effect of attacks on a healthy client: `npm run bench:attack [-- --database … --cases … --tenant …
// --output FILE]`. Each case runs on a new service. The healthy client sends one request after another.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startIssuer } from "../test/support/issuer.ts";
import { ATTACKS, HEALTH, LIST } from "./attack/attacker.ts";
import { measureApi, measureGateway } from "./attack/measure.ts";
import { GOAL, measureTenant, OTHER_NAMESPACE, type TenantResult } from "./attack/measureTenant.ts";
import { SSH_ATTACKS } from "./attack/sshAttacker.ts";
import { TENANT_CASES, type TenantCaseName } from "./attack/tenants/tenantCases.ts";
import { databases, names, output, readOptions, wholeNumber } from "./commandLine.ts";
import { processors, Report } from "./report.ts";
import { type DatabaseName, seed, startDatabase } from "./server/databases.ts";
import type { NamespaceName } from "./server/namespaces.ts";

const { database, cases, tenant, gateway, seconds, ...options } = readOptions("bench:attack", {
  database: databases,
  cases: names(Object.keys(ATTACKS)),
  tenant: names(Object.keys(TENANT_CASES) as TenantCaseName[]),
  gateway: names(Object.keys(SSH_ATTACKS) as (keyof typeof SSH_ATTACKS)[]),
  seconds: wholeNumber("length of each attack", 10),
  output,
});

const report = new Report();

/** Runs work with a new database and a new folder for the service. */
async function withDatabase(
  name: DatabaseName,
  namespaces: readonly NamespaceName[],
  work: (folder: string, url: string) => Promise<void>,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "gatehouse-attack-"));
  const { url, stop } = await startDatabase(name, folder);
  try {
    await seed(url, namespaces);
    await work(folder, url);
  } finally {
    await stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

const listed = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(([result, count]) => `${count} × ${result}`)
    .join(", ") || "–";

report.print(`# Effect of attacks on a healthy client

\`npm run bench:attack\`, ${seconds} s each, on ${processors()} shared with the attacker. Meanwhile, a healthy client requests \`${HEALTH}\` or
\`${LIST}\` without concurrency.

| Database | Attack | median (ms) | p99 (ms) | worst (ms) | peak memory (MB) | responses to the attacker |
| --- | --- | --- | --- | --- | --- | --- |`);
for (const name of cases.length > 0 ? database : []) {
  await withDatabase(name, ["many", "fleet"], async (folder, url) => {
    for (const attack of cases) {
      const { times, megabytes, responses } = await measureApi(folder, url, attack, seconds);
      const figures = times.map((time) => time.toFixed(1));
      report.row(name, ATTACKS[attack]?.title ?? "", ...figures, Math.round(megabytes), listed(responses));
    }
  });
}

function printTenant(database: DatabaseName, result: TenantResult): void {
  const { title, idle, attacked, refused, results, reachesP99, reachesBlock } = result;
  const times = [attacked.p50, attacked.p99, attacked.worst].map((time) => time.toFixed(1));
  report.row(
    database,
    title,
    idle.p50.toFixed(1),
    idle.p99.toFixed(1),
    ...times,
    (attacked.p99 / idle.p99).toFixed(1),
    idle.block.toFixed(0),
    attacked.block.toFixed(0),
    reachesP99 ? "yes" : "**no**",
    reachesBlock ? "yes" : "**no**",
    listed(refused),
    listed(results),
  );
}

if (tenant.length > 0) {
  report.print(`
# Hostile tenant

Each case has a tenant with the largest allowed amount of an input that a tenant chooses and the service evaluates. The
tenant, or a client that reaches the tenant's SSH port, web terminal or workload exchange, makes the service evaluate
the input again and again. Meanwhile, another tenant requests \`${LIST}\` without concurrency, or what the case states.
Times in milliseconds. "Idle" is the same service with the same data, without the attack. "Block" is the longest block of
the service's event loop, from the service's metric \`nodejs_eventloop_lag_max_seconds\`, which contains up to 10 ms more.

Goals: a p99 of at most ${GOAL.ratio} times the idle p99, or at most ${GOAL.p99} ms; no block above ${GOAL.block} ms (${GOAL.block + 10} ms of the metric).

| Database | Attack | idle median | idle p99 | median | p99 | worst | p99 / idle | idle block | block | goal p99 | goal block | refused to the other tenant | results of the attack |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |`);
  const issuer = await startIssuer();
  for (const name of database) {
    await withDatabase(name, [OTHER_NAMESPACE], async (folder, url) => {
      for (const one of tenant) printTenant(name, await measureTenant({ folder, url, seconds, issuer }, one));
    });
  }
  await issuer.stop();
}

if (gateway.length > 0) {
  report.print(`
# Effect of attacks on the SSH gateway

SQLite. The attacker uses a separate address. Memory: the peaks of the API's process and of the gateway process.

| Attack | GET: median (ms) | p99 | worst | API (MB) | gateway (MB) | login: median (ms) | worst | failed |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |`);
  for (const attack of gateway) {
    const { get, login, api, gateway } = await measureGateway(attack, seconds);
    const times = get?.map((time) => time.toFixed(1)) ?? ["no response", "", ""];
    const memory = [Math.round(api), Math.round(gateway) || "–"];
    const logins = [login.p50.toFixed(0), login.worst.toFixed(0), login.failed];
    report.row(SSH_ATTACKS[attack].title, ...times, ...memory, ...logins);
  }
}
report.write(options.output);
