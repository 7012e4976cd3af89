// Runs policy tests like gatehouse, in a separate process and with the built code. Vitest cannot run them: it would
// load the policy files differently, and they cannot import a package that is written in TypeScript. For each line
// `{ folder, facts }` of stdin, this program prints a line with one report for each element of `facts`.
import { createInterface } from "node:readline";
import { namespaceOf } from "./namespace.ts";
import type { PolicyTestInput } from "./policyFiles.ts";

const built = (module: string) =>
  new URL(`../../../provider/dist/policyTests/${module}.js`, import.meta.url).href;
const { runPolicyTests }: typeof import("../../../provider/policyTests/runPolicyTests.ts") = await import(
  built("runPolicyTests")
);
const { loadPolicySuite }: typeof import("../../../provider/policyTests/policySuite.ts") = await import(
  built("policySuite")
);

for await (const line of createInterface({ input: process.stdin })) {
  const { folder, facts }: { folder: string; facts: PolicyTestInput[] } = JSON.parse(line);
  const suite = await loadPolicySuite(folder);
  const reports = [];
  for (const { fixture, evaluated } of facts) {
    const { identity } = fixture;
    const state = namespaceOf({
      ...fixture,
      formerOwners: new Map(),
      identity: identity && { ...identity, userKeys: identity.userKeys && new Map(identity.userKeys) },
    });
    reports.push(await runPolicyTests(suite, { state, evaluated }));
  }
  console.log(JSON.stringify(reports));
}
process.exit();
