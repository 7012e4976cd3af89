// Runs policy tests like gatehouse, in a separate process and with the built code. Vitest cannot run them: it would
// load the policy files differently, and they cannot import a package that is written in TypeScript. This program reads
// `{ folder, facts }` as JSON from stdin, and prints one report for each element of `facts`.
import { text } from "node:stream/consumers";
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

const { folder, facts }: { folder: string; facts: PolicyTestInput[] } = JSON.parse(await text(process.stdin));
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
process.stdout.write(`${JSON.stringify(reports)}\n`, () => process.exit());
