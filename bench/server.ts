// What the service can do: `npm run bench:server [-- --database … --cases … --output FILE]`. Each case has the
// service to itself, as a new process; in turn with it is measured what a bare route with one read can do here.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Printout } from "./commandLine.ts";
import { readArguments } from "./server/arguments.ts";
import { benchDatabases, type DatabaseName, type StartedDatabase } from "./server/database.ts";
import { measureCase, warmUp } from "./server/measure.ts";
import { contentsOf, FLOOR_NAMESPACE, NAMESPACE_NAMES, type NamespaceName } from "./server/namespaces.ts";
import { FLOOR_COMMAND, startProcess } from "./server/process.ts";
import { head, row } from "./server/report.ts";
import { seed } from "./server/seed.ts";

const options = readArguments();
const { seconds, rounds, cases } = options;
const printout = new Printout();

/** Whether the cases need a namespace: those of the writer are of one case each, and take long to seed. */
function isNeeded(namespace: NamespaceName): boolean {
  const { owner } = contentsOf(namespace);
  if (owner === "writer") return cases.some(({ namespaces }) => namespaces?.includes(namespace));
  return owner !== "fleet";
}

/** Measures all cases in a database of their own. */
async function measureOn(name: DatabaseName, given: string | undefined): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "gatehouse-bench-"));
  const database = await benchDatabases[name].start(folder, given);
  try {
    const started = performance.now();
    await seed(name, database.url, NAMESPACE_NAMES.filter(isNeeded));
    if (database.floorUrl !== database.url) await seed(name, database.floorUrl, [FLOOR_NAMESPACE]);
    console.error(`${name}: seeded in ${((performance.now() - started) / 1000).toFixed(1)} s`);
    await measureIn(folder, name, database);
  } finally {
    await database.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measureIn(
  folder: string,
  name: DatabaseName,
  { url, floorUrl }: StartedDatabase,
): Promise<void> {
  const floor = await startProcess([...FLOOR_COMMAND, floorUrl], { log: join(folder, "floor.log") });
  try {
    await warmUp(floor);
    const run = { folder, url, seconds, rounds, floor };
    for (const one of cases) {
      for (const result of await measureCase(run, one)) printout.print(row(name, result));
    }
  } finally {
    await floor.stop();
  }
}

printout.print(head(options));
for (const name of options.databases) await measureOn(name, options.databaseUrl);
printout.write(options.output);
