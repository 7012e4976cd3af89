import { join, resolve } from "node:path";
import { Access, type AccessDomain } from "@gatehouse-access/sdk/policy";
import type { NamespaceState } from "../estate/namespaceState.ts";
import { loadPolicyFile } from "./loadPolicyFile.ts";
import { policyTestFiles } from "./policyTestFiles.ts";
import type { PolicyTestReport, PolicyTestResult } from "./results.ts";
import { runTest, thrown } from "./runTest.ts";
import type { PolicySubjects } from "./written/subjects.ts";

/** What policy tests are about: a namespace as it is, or as a change will leave it. */
export interface PolicyTestFacts extends NamespaceState {
  /** The login names and addresses that `access` is evaluated for, beside those that assertions name. */
  readonly domain: AccessDomain;
}

/**
 * Runs the policy tests beside a program. They are the team's own code, as the program is, and run in this process.
 * A file that cannot be loaded, or declares no test, is a failed test.
 *
 * Why no other test runner runs them: within one process, `run()` of node:test works once (in Node.js 22), and a second
 * run never ends; it ends when nothing is open any more, and so would wait for connections to the service; and it reports
 * the line of our own call of `test()` instead of one of the policy file. Vitest runs files in workers, compiles them
 * itself, so that enums pass, and brings almost 40 MB.
 * @param folder where Pulumi.yaml is
 * @throws Error when the folder cannot be read
 */
export async function runPolicyTests(folder: string, facts: PolicyTestFacts): Promise<PolicyTestReport> {
  const subjects = subjectsOf(facts);
  const tests: PolicyTestResult[] = [];
  for (const file of await policyTestFiles(folder)) {
    const place = { file, path: resolve(join(folder, file)) };
    const { tests: declared, error } = await loadPolicyFile(place.path);
    if (error !== undefined) {
      const failure = thrown(error, place.path);
      const failed = { ok: false, failures: [failure], warnings: [], durationMs: 0 };
      tests.push({ name: file, file, line: failure.line, ...failed });
    }
    for (const test of declared) tests.push(await runTest(test, place, subjects));
  }
  return { ok: tests.every(({ ok }) => ok), tests };
}

function subjectsOf({ policy, domain, members, apiKeys, unknown }: PolicyTestFacts): PolicySubjects {
  let access: Access | undefined;
  const known = <T>(list: readonly T[] | undefined, what: string): readonly T[] => {
    if (list) return list;
    throw new Error(unknown.find((sentence) => sentence.startsWith(what)) ?? `${what} could not be read`);
  };
  return {
    policy,
    domain,
    get access() {
      access ??= new Access(policy, domain);
      return access;
    },
    get members() {
      return known(members, "members");
    },
    get apiKeys() {
      return known(apiKeys, "API keys");
    },
  };
}
