// Measures the throughput of the service: `npm run bench:server [-- --database … --cases … --output FILE]`. Each case
// runs alone on a new service process. In turn with each case, the benchmark measures the baseline server (floor.ts): a
// minimal route that reads one row.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { databases, names, output, readOptions, text, wholeNumber } from "./commandLine.ts";
import { secondsOf } from "./measuring.ts";
import { NODE, processors, Report, today } from "./report.ts";
import { CASES } from "./server/cases.ts";
import { type DatabaseName, seed, startDatabase } from "./server/databases.ts";
import { CONNECTIONS, measureCase, startFloor } from "./server/measure.ts";
import { contentsOf, FLOOR_NAMESPACE, NAMESPACE_NAMES, type NamespaceName } from "./server/namespaces.ts";

const options = readOptions("bench:server", {
  database: databases,
  "database-url": text(
    "URL",
    "empty PostgreSQL database; by default, the benchmark starts a PostgreSQL server",
  ),
  cases: names(Object.keys(CASES)),
  seconds: wholeNumber("duration of each measured run, in seconds", 5),
  rounds: wholeNumber("number of runs of each case; the table shows the medians", 3),
  output,
});
const { seconds, rounds } = options;
const cases = options.cases.flatMap((name) => CASES[name] ?? []);
const report = new Report();

/**
 * Returns true if the selected cases need a namespace. The benchmark does not seed other namespaces, since seeding
 * takes a long time. Each namespace of the user `writer` belongs to one case.
 */
function isNeeded(namespace: NamespaceName): boolean {
  const { owner } = contentsOf(namespace);
  if (owner === "writer") return cases.some(({ namespaces }) => namespaces?.includes(namespace));
  return owner !== "fleet";
}

/** Measures all cases in a separate database. */
async function measureOn(name: DatabaseName): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "gatehouse-bench-"));
  const { url, floorUrl, stop } = await startDatabase(name, folder, options["database-url"]);
  try {
    const taken = await secondsOf(async () => {
      await seed(url, NAMESPACE_NAMES.filter(isNeeded));
      if (floorUrl !== url) await seed(floorUrl, [FLOOR_NAMESPACE]);
    });
    console.error(`${name}: seeded in ${taken.toFixed(1)} s`);
    const floor = await startFloor(folder, floorUrl);
    try {
      const run = { folder, url, seconds, rounds, floor };
      for (const one of cases) for (const result of await measureCase(run, one)) printRow(name, result);
    } finally {
      await floor.stop();
    }
  } finally {
    await stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

const rounded = (rate: number): string =>
  rate.toLocaleString("en", { maximumFractionDigits: rate < 100 ? 1 : 0 });

function printRow(database: string, result: Awaited<ReturnType<typeof measureCase>>[number]): void {
  const { title, rate, floor, ratio, core, floorCore, p50, p99, megabytes, statements } = result;
  report.row(
    database,
    title,
    rounded(rate),
    rounded(floor),
    ratio.toFixed(2),
    core.toFixed(2),
    floorCore.toFixed(2),
    p50.toFixed(1),
    p99.toFixed(1),
    megabytes,
    statements.toFixed(1),
  );
}

const machine = [
  today(),
  `${processors()}, load generator and database included`,
  NODE,
  `${CONNECTIONS} connections`,
  `medians of ${rounds} runs of ${seconds} s, in turn with the floor`,
];
report.print(`# Throughput of the service

Written by \`npm run bench:server -- --output FILE\`; [docs/operate/benchmarks.md](../docs/operate/benchmarks.md) describes the measurements.

${machine.join("; ")}.

| database | case | req/s | floor req/s | ratio | core ms/request | floor core ms | p50 ms | p99 ms | RSS MB | SQL statements/request |
|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|`);
for (const name of options.database) await measureOn(name);
report.write(options.output);
