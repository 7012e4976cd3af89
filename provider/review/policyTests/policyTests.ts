import { join, resolve } from "node:path";
import { Access, type AccessDomain } from "@gatehouse-access/sdk/policy";
import type { NamespaceState } from "../estate.ts";
import { policyTestFiles } from "./files.ts";
import { loadPolicyFile } from "./load.ts";
import type { PolicyTestReport, PolicyTestResult } from "./results.ts";
import { runTest, thrown } from "./runTest.ts";
import type { PolicySubjects } from "./written/policyTest.ts";

/** What policy tests are about: a namespace as it is, or as a change will leave it. */
export interface PolicyTestFacts extends NamespaceState {
  /** What `access` is evaluated for, beside what assertions name. */
  readonly domain: AccessDomain;
}

/**
 * Runs the policy tests beside a program. They are the team's own code, as the program is, and run in this process.
 * A file that cannot be loaded, or declares no test, is a failed test.
 * @param folder where Pulumi.yaml is
 * @throws Error when the folder cannot be read
 */
export async function runPolicyTests(folder: string, facts: PolicyTestFacts): Promise<PolicyTestReport> {
  const subjects = subjectsOf(facts);
  const tests: PolicyTestResult[] = [];
  for (const file of await policyTestFiles(folder)) {
    const place = { file, path: resolve(join(folder, file)) };
    const { tests: declared, error } = await loadPolicyFile(place.path);
    if (error !== undefined) tests.push(notLoaded(place, error));
    for (const test of declared) tests.push(await runTest(test, place, subjects));
  }
  return { ok: tests.every(({ ok }) => ok), tests };
}

function notLoaded({ file, path }: { file: string; path: string }, error: unknown): PolicyTestResult {
  const failure = thrown(error, path);
  return {
    name: file,
    file,
    line: failure.line,
    ok: false,
    failures: [failure],
    warnings: [],
    durationMs: 0,
  };
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
