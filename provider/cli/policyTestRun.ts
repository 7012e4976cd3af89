import { relative, resolve } from "node:path";
import type { Command } from "commander";
import { EngineError, type Result, type Stack, withoutValues } from "../engine/index.ts";
import { policyTestFiles } from "../policyTests/policyFiles.ts";
import type { TestedNamespace } from "../review/testedNamespace.ts";
import type { Io } from "./io.ts";
import { policyTestsText } from "./policyTestsText.ts";
import { type Colours, colours } from "./render.ts";
import { withConnection } from "./withConnection.ts";

/** The exit code where a policy test fails, or nobody can tell whether it does. */
export const TESTS_FAILED = 2;

/** True where policy tests stand against a run. */
export const isTestsFailed = (
  tests: TestedNamespace | undefined,
  { allowUnseen = false }: { readonly allowUnseen?: boolean },
): boolean => tests !== undefined && (!tests.ok || (tests.unseen.length > 0 && !allowUnseen));

/** What a command does with policy tests beside all else, within its description. */
export const TESTING = "run the policy tests (*.policy.ts) beside the program on the namespace as it";

/** Whether the policy tests of a run are about the namespace as its plan will leave it, or as it is. */
export type Tested = "planned" | "live";

/** A run that was done. */
interface DoneRun {
  /** The program's. */
  readonly folder: string;
  readonly stack: Pick<Stack, "config">;
  readonly result: Result;
  /** The result for a terminal; undefined to print JSON. */
  readonly shown: string | undefined;
}

/** Adds the flag that leaves policy tests out. */
export function addNoTestsFlag(command: Command): Command {
  return command.option("--no-tests", "leave out the policy tests (*.policy.ts) beside the program");
}

/**
 * Whether there are policy tests beside a program.
 * @throws EngineError (`project`) when its folder cannot be read
 */
export async function hasPolicyTests(folder: string): Promise<boolean> {
  const files = await policyTestFiles(folder).catch((cause: Error) => {
    throw new EngineError("project", cause.message, { cause });
  });
  return files.length > 0;
}

/**
 * Prints the result of a run, then that of the policy tests beside its program; as JSON both are one object. Where the
 * tests cannot be run, the result of the run is printed all the same.
 * @returns what came of the tests
 * @throws ConfigurationError, RequestError and others of the connection; EngineError of the stack's configuration
 */
export async function printTested(io: Io, run: DoneRun, tested: Tested): Promise<TestedNamespace> {
  const { folder, result, shown } = run;
  const c = colours(io.stdout, io.env);
  const print = (text: string) => io.stdout.write(`${text}\n`);
  const json = (policyTests?: TestedNamespace) =>
    JSON.stringify({ ...withoutValues(result), ...(policyTests && { policyTests }) }, null, 2);
  if (shown !== undefined) print(shown);
  const policyTests = await test(io, run, tested).catch((error: unknown) => {
    if (shown === undefined) print(json());
    throw error;
  });
  print(
    shown === undefined
      ? json(policyTests)
      : `${c.bold("Policy tests")}\n${await testedText(c, policyTests, folder)}`,
  );
  return policyTests;
}

async function test(io: Io, { folder, stack, result }: DoneRun, tested: Tested): Promise<TestedNamespace> {
  // Loaded here, since programs without policy tests do not need it.
  const { testLive, testPlan } = await import("../review/testedNamespace.ts");
  return withConnection(
    io,
    (connection) =>
      tested === "planned" ? testPlan(connection, folder, result) : testLive(connection, folder),
    await stack.config(),
  );
}

/** What came of policy tests, and what they did not look at. */
export async function testedText(c: Colours, tested: TestedNamespace, folder: string): Promise<string> {
  const { printable } = await import("../words.ts");
  return [
    policyTestsText(c, tested, relative("", resolve(folder))),
    ...tested.unseen.map((sentence) => c.red(`not looked at: ${printable(sentence)}`)),
    ...tested.unknown.map((sentence) => c.yellow(`not known: ${printable(sentence)}`)),
  ].join("\n");
}
