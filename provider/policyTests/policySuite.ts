import { resolve } from "node:path";
import type { DeclaredTest } from "./api/running.ts";
import { type LoadedFile, lineIn, loadPolicyFile, policyTestFiles } from "./policyFiles.ts";
import type { UntestedNamespace } from "./results.ts";

/** A loaded policy file. */
export interface PolicyFile extends LoadedFile {
  /** Path relative to the project directory, with forward slashes. */
  readonly file: string;
  /** Absolute path. */
  readonly path: string;
}

/** The policy files of a program, in the order in which they run. */
export interface PolicySuite {
  readonly files: readonly PolicyFile[];
}

/**
 * Loads the policy tests of a program.
 * @param folder the project directory
 * @throws Error if the directory cannot be read
 */
export async function loadPolicySuite(folder: string): Promise<PolicySuite> {
  const files: PolicyFile[] = [];
  for (const file of await policyTestFiles(folder)) {
    const path = resolve(folder, file);
    files.push({ file, path, ...(await loadPolicyFile(path)) });
  }
  return { files };
}

/** All tests of a suite. */
export const declaredTests = ({ files }: PolicySuite): DeclaredTest[] => files.flatMap(({ tests }) => tests);

/** All namespaces that a suite declares as untested. */
export const declaredUntested = ({ files }: PolicySuite): UntestedNamespace[] =>
  files.flatMap(({ file, path, untested }) =>
    untested.map(({ namespace, reason, stack }) => ({ namespace, reason, file, line: lineIn(stack, path) })),
  );
