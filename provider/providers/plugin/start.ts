// The module that `bin/pulumi-resource-gatehouse.js` runs.
import { main } from "./main.ts";

await main(process.argv.slice(2));
