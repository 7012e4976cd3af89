// Measures what a list of 100 keys costs in this process: `npm run bench:lists [-- --database-url URL]`. The process has
// the exit code 1 if the list costs more than the recorded figures allow. docs/operate/benchmarks.md describes how to
// change the recorded figures.
import { publicKeys } from "../sdk/dist/contract/index.js";
import { readRows, sql } from "../server/dist/db/sql/sql.js";
import { getPublicKeys } from "../server/dist/features/publicKeys/publicKeys.js";
import { serializerOf } from "../server/dist/http/contract/serialization.js";
import { readOptions, text } from "./commandLine.ts";
import { median } from "./measuring.ts";
import { openForBench, seed, startDatabase } from "./server/databases.ts";
import { contentsOf, tenantOf } from "./server/namespaces.ts";

/**
 * The figures of the present code. `bytes` are the bytes on the heap that the service allocates for each row, and are
 * nearly the same in every run on every machine. `ratio` is the CPU time of the list, divided by the CPU time of a query
 * for one row.
 */
const RECORDED = { bytes: 2873, ratio: 6.5 };
/** The factors by which a measured figure may exceed the recorded one. CPU times differ more between runs. */
const ALLOWED = { bytes: 1.1, ratio: 1.5 };
/** Maximum number of measurements. The list costs too much if each of them exceeds an allowed figure. */
const ATTEMPTS = 3;

const NAMESPACE = "keys";
/** Number of lists before the measurement, after which V8 has compiled the code. */
const WARM_UP = 1500;
/** Number of lists whose allocations are measured. */
const LISTS = 300;
/** Number of CPU times of each kind, and number of calls in each. Calls of both kinds alternate. */
const ROUNDS = 15;
const CALLS = 60;

type Work = () => Promise<unknown>;

/**
 * Returns the bytes that a call allocates on the heap. If V8 collects garbage during a call, the heap shrinks, and this
 * call does not count.
 */
async function bytesOf(work: Work): Promise<number> {
  const sizes: number[] = [];
  for (let call = 0; call < LISTS; call += 1) {
    const before = process.memoryUsage().heapUsed;
    await work();
    const size = process.memoryUsage().heapUsed - before;
    if (size > 0) sizes.push(size);
  }
  return median(sizes);
}

/** Returns the CPU time of a number of calls, in microseconds. */
async function cpuTimeOf(work: Work): Promise<number> {
  const before = process.cpuUsage();
  for (let call = 0; call < CALLS; call += 1) await work();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

async function measure(list: Work, query: Work): Promise<typeof RECORDED> {
  const { keys: rows = 0 } = contentsOf(NAMESPACE);
  for (let call = 0; call < WARM_UP; call += 1) {
    await list();
    await query();
  }
  const bytes = (await bytesOf(list)) / rows;
  const ratios: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1)
    ratios.push((await cpuTimeOf(list)) / (await cpuTimeOf(query)));
  return { bytes, ratio: median(ratios) };
}

const options = readOptions("bench:lists", {
  "database-url": text(
    "URL",
    "empty PostgreSQL database; by default, the benchmark starts a PostgreSQL server",
  ),
});
const { url, stop } = await startDatabase("postgresql", "", options["database-url"]);
try {
  await seed(url, [NAMESPACE]);
  const { client, close } = await openForBench(url);
  try {
    const tenant = tenantOf(NAMESPACE);
    const context = {
      services: { db: client },
      identity: { tenant, role: "owner" },
      query: { page: 1, per_page: 100 },
      header: () => {},
    } as unknown as Parameters<typeof getPublicKeys>[0];
    const serialize = serializerOf(publicKeys.getPublicKeys.success.body);
    const list = async () => serialize(await getPublicKeys(context));
    const query = () => readRows(client, sql`SELECT "name" FROM "Namespace" WHERE "tenantId" = ${tenant}`);
    let isTooMuch = true;
    for (let attempt = 0; isTooMuch && attempt < ATTEMPTS; attempt += 1) {
      const { bytes, ratio } = await measure(list, query);
      isTooMuch = bytes > RECORDED.bytes * ALLOWED.bytes || ratio > RECORDED.ratio * ALLOWED.ratio;
      console.log(
        `bytes for each row: ${bytes.toFixed(0)} (recorded ${RECORDED.bytes}, allowed factor ${ALLOWED.bytes}); ` +
          `CPU time beside a query for one row: ${ratio.toFixed(1)} (recorded ${RECORDED.ratio}, allowed factor ${ALLOWED.ratio})`,
      );
    }
    if (isTooMuch) process.exitCode = 1;
  } finally {
    await close();
  }
} finally {
  await stop();
}
