// The module that `bin/gatehouse.js` runs.
import { main } from "./main.ts";

const code = await main(process.argv.slice(2), process);
for (const stream of [process.stdout, process.stderr]) {
  await new Promise((written) => stream.write("", written));
}
// Exits explicitly, since a policy test with unfinished work would keep the process running.
process.exit(code);
