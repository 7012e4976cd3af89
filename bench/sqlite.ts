// Throughput and memory of the embedded database: `node bench/sqlite.ts [writes]`, after `npm run build`.
// The writes go through the client as requests do: 16 at a time, each one acknowledged before the next begins.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDatabase } from "../server/dist/db/openDatabase.js";

const total = Number(process.argv[2] ?? 100_000);
const atOnce = 16;
const folder = mkdtempSync(join(tmpdir(), "gatehouse-bench-"));
const { client, close } = await openDatabase({ file: join(folder, "bench.db") });

async function measure(
  name: string,
  count: number,
  work: (index: number) => Promise<unknown>,
): Promise<void> {
  const started = performance.now();
  let next = 0;
  const worker = async () => {
    while (next < count) {
      const index = next;
      next += 1;
      await work(index);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  const seconds = (performance.now() - started) / 1000;
  const rate = Math.round(count / seconds);
  console.log(JSON.stringify({ name, count, rate, rssMb: Math.round(process.memoryUsage.rss() / 1e6) }));
}

const user = (index: number) => ({
  id: String(index),
  username: `user${index}`,
  name: "A name",
  email: `user${index}@example.com`,
  passwordHash: "-".repeat(60),
  createdAt: new Date(),
});

await measure("insert", total, (index) => client.user.create({ data: user(index) }));
await measure("find", total / 5, (index) => client.user.findUnique({ where: { id: String(index) } }));
await measure("transaction", total / 20, (index) =>
  client.$transaction(async (transaction) => {
    const where = { id: String(index) };
    const { maxNamespaces } = await transaction.user.findUniqueOrThrow({ where });
    await transaction.user.update({ where, data: { maxNamespaces: maxNamespaces + 1 } });
  }),
);
// Kibibytes: the most that the process ever had.
console.log(
  JSON.stringify({ name: "peak", rssMb: Math.round((process.resourceUsage().maxRSS * 1024) / 1e6) }),
);
await close();
rmSync(folder, { recursive: true });
