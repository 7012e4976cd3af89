// Runs policy tests like gatehouse, in a separate process and with the built code. Vitest cannot run them: it would
// load the policy files differently, and they cannot import a package that is written in TypeScript. For each
// line of stdin, a `PolicyRun`, this program prints a line, a `PolicyRunAnswer`.
import { createInterface } from "node:readline";
import type { PolicyTestReport } from "../../../provider/policyTests/results.ts";
import { namespaceOf } from "./namespace.ts";
import type { PolicyRun, PolicyRunAnswer } from "./policyFiles.ts";

const built = (module: string) =>
  new URL(`../../../provider/dist/policyTests/${module}.js`, import.meta.url).href;
const { runPolicyTests }: typeof import("../../../provider/policyTests/runPolicyTests.ts") = await import(
  built("runPolicyTests")
);
const { loadPolicySuite }: typeof import("../../../provider/policyTests/policySuite.ts") = await import(
  built("policySuite")
);

let problems: string[] = [];
const note = (problem: unknown) => {
  problems.push(problem instanceof Error ? String(problem.stack) : String(problem));
};
process.on("warning", note).on("uncaughtException", note).on("unhandledRejection", note);

async function reportsOf({ folder, facts }: PolicyRun): Promise<PolicyTestReport[]> {
  const suite = await loadPolicySuite(folder);
  const reports: PolicyTestReport[] = [];
  for (const { fixture, evaluated } of facts) {
    const { identity } = fixture;
    const state = namespaceOf({
      ...fixture,
      formerOwners: new Map(),
      identity: identity && { ...identity, userKeys: identity.userKeys && new Map(identity.userKeys) },
    });
    reports.push(await runPolicyTests(suite, { state, evaluated }));
  }
  return reports;
}

for await (const line of createInterface({ input: process.stdin })) {
  const reports = await reportsOf(JSON.parse(line) as PolicyRun).catch((error: unknown) => {
    note(error);
    return [];
  });
  // Node.js emits warnings and unhandled rejections after the current work.
  await new Promise(setImmediate);
  console.log(JSON.stringify({ reports, problems } satisfies PolicyRunAnswer));
  problems = [];
}
process.exit();
