// The module that `bin/gatehouse-agent.js` runs.
import { main } from "./main.ts";

process.exitCode = await main(process.argv.slice(2));
