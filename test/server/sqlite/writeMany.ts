// memory.test.ts runs this program in a separate process with --expose-gc. The program writes rows one by one, every
// second row in a transaction. It measures the memory after a garbage collection, and prints the average number of
// bytes that each row of the second half has added.
import { openDatabase } from "../../../server/db/openDatabase.ts";
import { user } from "../db/rows.ts";

if (!globalThis.gc) throw new Error("needs --expose-gc");
const collect = globalThis.gc;
const [file = "", count = "0"] = process.argv.slice(2);
const { client, close } = await openDatabase({ file });

async function write(from: number, to: number): Promise<void> {
  for (let index = from; index < to; index += 1) {
    const data = user(`user${index}`);
    if (index % 2 === 0) await client.user.create({ data });
    else await client.$transaction(async (transaction) => transaction.user.create({ data }));
  }
}

function held(): number {
  collect();
  return process.memoryUsage().rss;
}

const half = Number(count) / 2;
await write(0, half);
const before = held();
await write(half, 2 * half);
console.log(JSON.stringify({ rows: await client.user.count(), keptOfEach: (held() - before) / half }));
await close();
