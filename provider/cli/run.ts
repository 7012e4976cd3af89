import { createInterface } from "node:readline/promises";
import {
  ENDING_SIGNALS,
  EngineError,
  type EngineEvent,
  openStack,
  type Plan,
  type Result,
  RunError,
  type Stack,
  UpdateFailedError,
  withoutValues,
} from "../engine/index.ts";
import { OutdatedPlanError } from "../plan/saved/OutdatedPlanError.ts";
import type { TestedNamespace } from "../review/testedNamespace.ts";
import { printable, printableLines } from "../words.ts";
import { type StackFlags, stackOptionsOf } from "./flags.ts";
import type { Io, Output } from "./io.ts";
import { openOnService, requireService, type Service } from "./openOnService.ts";
import { hasPolicyTests, isTestsFailed, printTested, TESTS_FAILED, type Tested } from "./policyTestRun.ts";
import { type Colours, colours, progressLine, resultText } from "./render.ts";
import { OUTDATED } from "./reviewedPlan.ts";
import { tellingOf } from "./withConnection.ts";

/** The flags that say how a run is done and told. */
export interface RunFlags extends StackFlags {
  readonly json?: boolean;
  readonly yes?: boolean;
  readonly offline?: boolean;
  readonly tests?: boolean;
  readonly allowUnseen?: boolean;
}

/** How many objects are read before a line says so. */
const READS_PER_LINE = 100;

type Ask = (question: string) => { confirm?: (plan: Plan) => Promise<boolean> };

/** What a command works with. */
export interface Running {
  /** The settings in it name the namespace. */
  readonly io: Io;
  readonly stack: Stack;
  readonly ask: Ask;
  /**
   * Asks the service whether it would do what a plan with values says.
   * @throws UpdateFailedError when it would not
   */
  readonly check: (plan: Plan) => Promise<void>;
  /** Undefined with `--offline`, and where no address is set. */
  readonly service: Service | undefined;
  /** Where a run is told: beside the result, where that is JSON. */
  readonly told: Output;
  /** Writes the namespace of the run into the stack's configuration. */
  readonly pin: () => Promise<void>;
}

interface RunOptions<R extends Result> {
  /** Name of a namespace to make, where the user is in none. */
  readonly createNamespace?: string | undefined;
  /**
   * What the policy tests beside the program are about.
   * @default they are not run
   */
  readonly tested?: Tested;
  /**
   * The exit code of a run that did not fail.
   * @default 0
   */
  readonly code?: (result: R) => number;
  /**
   * The result for a terminal.
   * @default changed resources, outputs, counts
   */
  readonly text?: (io: Io, result: R) => string | Promise<string>;
  /**
   * What is done when all of it is printed.
   * @param tests what came of the policy tests, where they were run
   */
  readonly after?: (tests: TestedNamespace | undefined) => Promise<void>;
  /**
   * Whether the work writes to the service or the state, so that somebody must agree to it.
   * @default false
   */
  readonly isWriting?: boolean | undefined;
}

/**
 * Opens a stack, does work with it and prints its result, or its error. The first signal that ends processes lets
 * operations in flight end, the second one ends the process.
 * @returns the exit code
 */
export async function run<R extends Result>(
  io: Io,
  folder: string,
  flags: RunFlags,
  work: (running: Running) => Promise<R>,
  options: RunOptions<R> = {},
): Promise<number> {
  const { tested, createNamespace, code = () => 0, text = textOf, after = async () => {} } = options;
  const { stdin, stdout, stderr, env } = io;
  const asks = !flags.yes && !flags.json && stdin.isTTY === true && stdout.isTTY === true;
  if (options.isWriting && !flags.yes && !asks) return report(io, unattended(flags), flags);
  const abort = new AbortController();
  let interrupted = false;
  const interrupt = (): void => {
    if (interrupted) process.exit(130);
    interrupted = true;
    stderr.write("Finishing what is in flight; interrupt again to stop at once.\n");
    abort.abort();
  };
  for (const name of ENDING_SIGNALS) process.on(name, interrupt);
  let toTest: (() => Promise<TestedNamespace | undefined>) | undefined;
  const ask: Ask = (question) => (asks ? { confirm: (plan) => confirm(io, plan, question) } : {});
  let service: Service | undefined;
  let exitCode: number;
  try {
    const told = flags.json ? stderr : stdout;
    const stackOptions = {
      ...stackOptionsOf(folder, flags),
      signal: abort.signal,
      onEvent: progress(told, colours(told, env)),
    };
    const opened = flags.offline
      ? { stack: await openStack({ ...stackOptions, env }), service: undefined, io }
      : await openOnService(io, stackOptions, createNamespace);
    const { stack } = opened;
    service = opened.service;
    if (service) told.write(`Namespace: ${service.text}\n`);
    const withTests =
      tested !== undefined && flags.tests !== false && !flags.offline && (await hasPolicyTests(folder));
    const check = (plan: Plan) =>
      flags.offline ? Promise.resolve() : requirePossible(stderr, opened.service, plan);
    const pin = async () => {
      const said = await opened.service?.pin();
      if (said !== undefined) told.write(`${said}\n`);
    };
    const result = await work({ io: opened.io, stack, service, told, ask, check, pin });
    const shown = flags.json ? undefined : await text(io, result);
    toTest = withTests
      ? () => printTested(opened.io, { folder, stack, result, shown }, tested)
      : async () => undefined;
    if (!withTests) printResult(io, result, shown);
    exitCode = code(result);
  } catch (error) {
    const failed = report(io, await asEngineError(error), flags);
    exitCode = interrupted ? 130 : failed;
  } finally {
    await service?.connection.client.close();
    for (const name of ENDING_SIGNALS) process.off(name, interrupt);
  }
  if (!toTest) return exitCode;
  const tests = await toTest();
  await after(tests);
  return isTestsFailed(tests, flags) ? TESTS_FAILED : exitCode;
}

const unattended = ({ json }: RunFlags): EngineError =>
  new EngineError(
    "unattended",
    `this run writes, and ${json ? "with --json nobody is asked" : "there is nobody to ask: the standard input or output is no terminal"}. Give --yes to agree to it beforehand; up also takes --plan with a plan that was reviewed. Nothing was done.`,
  );

/** Errors of the service and of the settings as those of an engine; all others as they are. */
async function asEngineError(error: unknown): Promise<unknown> {
  if (error instanceof EngineError) return error;
  const { GatehouseError } = await import("@gatehouse-access/sdk");
  if (!(error instanceof GatehouseError)) return error;
  return new EngineError("service", printable(error.message), { cause: error });
}

/**
 * Asks the service whether it would do what a plan says.
 * @throws UpdateFailedError naming what it would not do
 */
async function requirePossible(stderr: Output, service: Service | undefined, plan: Plan): Promise<void> {
  const { definitionOf } = await import("../estate/liveObjects.ts");
  if (plan.steps.every((step) => step.op === "same" || !definitionOf(step))) return;
  const asked = requireService(service);
  const { planProblems } = await import("../review/guards/planProblems.ts");
  const found = await tellingOf(stderr, asked.connection, () => planProblems(asked.connection, plan, asked));
  const problems = found.map(({ text }) => printable(text));
  if (problems.length === 0) return;
  const [first, ...others] = problems;
  const text = others.length === 0 ? `${first}` : `\n${problems.map((problem) => `  ${problem}`).join("\n")}`;
  throw new UpdateFailedError(`The service would not do this: ${text}`, { ...plan, ok: false });
}

function progress(stream: Output, c: Colours): (event: EngineEvent) => void {
  let read = 0;
  return (event) => {
    if (event.kind === "finished" && event.op === "refresh") read += 1;
    const line = progressLine(c, event) ?? readLine(event, read);
    if (line !== undefined) stream.write(`${line}\n`);
  };
}

/** A line that says how many objects were read; undefined except for every hundredth. */
function readLine(event: EngineEvent, read: number): string | undefined {
  const due = event.kind === "finished" && event.op === "refresh" && read % READS_PER_LINE === 0;
  return due ? `   ${read} read` : undefined;
}

const textOf = ({ stdout, env }: Io, result: Result): string =>
  resultText(colours(stdout, env), withoutValues(result));

/** Prints the text of a result; without one its JSON. */
export function printResult({ stdout }: Io, result: Result, text: string | undefined): void {
  stdout.write(`${text ?? JSON.stringify(withoutValues(result), null, 2)}\n`);
}

/**
 * Prints an error of an engine.
 * @returns the exit code
 * @throws any other error
 */
export function report(io: Io, error: unknown, flags: Pick<RunFlags, "json">): number {
  if (!(error instanceof EngineError)) throw error;
  const result = error instanceof RunError ? error.result : undefined;
  if (result && (flags.json || result.steps.length > 0))
    printResult(io, result, flags.json ? undefined : textOf(io, result));
  else if (flags.json) {
    const { code, message } = error;
    const more = error instanceof OutdatedPlanError ? { differences: error.differences } : {};
    io.stdout.write(`${JSON.stringify({ ok: false, error: { code, message, ...more } }, null, 2)}\n`);
  }
  io.stderr.write(`${colours(io.stderr, io.env).red(`error: ${printableLines(error.message)}`)}\n`);
  return error instanceof OutdatedPlanError ? OUTDATED : 1;
}

async function confirm({ stdin, stdout, env }: Io, plan: Plan, question: string): Promise<boolean> {
  stdout.write(`${resultText(colours(stdout, env), plan)}\n`);
  const terminal = createInterface({ input: stdin, output: stdout });
  try {
    return /^y(es)?$/i.test((await terminal.question(`${question} [y/N] `)).trim());
  } finally {
    terminal.close();
  }
}
