// Measures the effect of attacks on a healthy client: `npm run bench:attack [-- --database … --cases … --output FILE]`.
// Each case runs on a new service. The healthy client sends one request after another.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ATTACKS, HEALTH, LIST } from "./attack/attacker.ts";
import { measureApi, measureGateway } from "./attack/measure.ts";
import { SSH_ATTACKS } from "./attack/sshAttacker.ts";
import { databases, names, output, readOptions, wholeNumber } from "./commandLine.ts";
import { processors, Report } from "./report.ts";
import { seed, startDatabase } from "./server/databases.ts";

const { database, cases, gateway, seconds, ...options } = readOptions("bench:attack", {
  database: databases,
  cases: names(Object.keys(ATTACKS)),
  gateway: names(Object.keys(SSH_ATTACKS) as (keyof typeof SSH_ATTACKS)[]),
  seconds: wholeNumber("length of each attack", 10),
  output,
});

const report = new Report();
report.print(`# Effect of attacks on a healthy client

\`npm run bench:attack\`, ${seconds} s each, on ${processors()} shared with the attacker. Meanwhile, a healthy client requests \`${HEALTH}\` or
\`${LIST}\` without concurrency.

| Database | Attack | median (ms) | p99 (ms) | worst (ms) | peak memory (MB) | responses to the attacker |
| --- | --- | --- | --- | --- | --- | --- |`);
for (const name of database) {
  const folder = mkdtempSync(join(tmpdir(), "gatehouse-attack-"));
  const { url, stop } = await startDatabase(name, folder);
  try {
    await seed(url, ["many", "fleet"]);
    for (const attack of cases) {
      const { times, megabytes, responses } = await measureApi(folder, url, attack, seconds);
      const counts = Object.entries(responses).map(([status, count]) => `${count} × ${status}`);
      const figures = times.map((time) => time.toFixed(1));
      report.row(
        name,
        ATTACKS[attack]?.title ?? "",
        ...figures,
        Math.round(megabytes),
        counts.join(", ") || "–",
      );
    }
  } finally {
    await stop();
    rmSync(folder, { recursive: true, force: true });
  }
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
