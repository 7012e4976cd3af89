// What the service can do: `npm run bench:server [-- --cases … --seconds … --output FILE]`. Each case has the
// service to itself, as a new process; beside it stands what a bare route with one read can do here.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readArguments, usage } from "./server/arguments.ts";
import { benchDatabases } from "./server/database.ts";
import { floorRate, measureCase, measureFloor } from "./server/measure.ts";
import { head, row } from "./server/report.ts";
import { seed } from "./server/seed.ts";

const options = readArguments(process.argv.slice(2));
if (typeof options === "string") {
  console.error(`${options}\n${usage}`);
  process.exit(2);
}

const lines: string[] = [];
const print = (line: string) => {
  lines.push(line);
  console.log(line);
};

print(head(options.seconds));
for (const database of options.databases) {
  const folder = mkdtempSync(join(tmpdir(), "gatehouse-bench-"));
  const run = {
    folder,
    url: benchDatabases[database].url(folder, options.databaseUrl),
    seconds: options.seconds,
  };
  try {
    const started = performance.now();
    await seed(database, run.url);
    console.error(`${database}: seeded in ${((performance.now() - started) / 1000).toFixed(1)} s`);
    const floor = await measureFloor(run);
    print(row(database, "floor: bare route, one read", floor, floor.rate));
    for (const one of options.cases) {
      const rate = await floorRate(run);
      print(row(database, one.title, await measureCase(run, one), rate));
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
if (options.output) writeFileSync(options.output, `${lines.join("\n")}\n`);
