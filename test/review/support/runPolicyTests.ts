// Runs policy tests as gatehouse does, in a process of its own: the test runner would load the files in its own way.
// Takes [folder, facts] as JSON from the standard input, and prints the reports of as many runs as are asked for.
import { text } from "node:stream/consumers";
import { type PolicyTestFacts, runPolicyTests } from "../../../provider/review/policyTests.ts";

const { folder, facts }: { folder: string; facts: PolicyTestFacts[] } = JSON.parse(await text(process.stdin));
const reports = [];
for (const each of facts) reports.push(await runPolicyTests(folder, each));
process.stdout.write(`${JSON.stringify(reports)}\n`, () => process.exit());
