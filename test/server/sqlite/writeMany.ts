// Run by memory.test.ts in a process of its own: writes rows one by one, every other one in a transaction, and
// prints the most memory that the process ever had, in megabytes.
import { openDatabase } from "../../../server/dist/db/openDatabase.js";
import { user } from "../db/rows.ts";

const [file = "", count = "0"] = process.argv.slice(2);
const { client, close } = await openDatabase({ file });
for (let index = 0; index < Number(count); index += 1) {
  const data = user(`user${index}`);
  if (index % 2 === 0) await client.user.create({ data });
  else await client.$transaction(async (transaction) => transaction.user.create({ data }));
}
console.log(
  JSON.stringify({
    rows: await client.user.count(),
    megabytes: (process.resourceUsage().maxRSS * 1024) / 1e6,
  }),
);
await close();
