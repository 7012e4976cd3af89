// Runs policy tests like gatehouse, in a separate process and with the built code. Vitest cannot run them: it would
// load the policy files differently, and they cannot import a package that is written in TypeScript. This program reads
// `{ folder, facts }` as JSON from stdin, and prints one report for each element of `facts`.
import { text } from "node:stream/consumers";
import type { PolicyTestFacts } from "../../../provider/policyTests/runPolicyTests.ts";

const BUILT = new URL("../../../provider/dist/policyTests/runPolicyTests.js", import.meta.url).href;
const { runPolicyTests }: typeof import("../../../provider/policyTests/runPolicyTests.ts") = await import(
  BUILT
);

const { folder, facts }: { folder: string; facts: PolicyTestFacts[] } = JSON.parse(await text(process.stdin));
const reports = [];
for (const each of facts) reports.push(await runPolicyTests(folder, each));
process.stdout.write(`${JSON.stringify(reports)}\n`, () => process.exit());
