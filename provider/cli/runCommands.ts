import { createInterface } from "node:readline/promises";
import { type Command, Option } from "commander";
import {
  CancelledError,
  EngineError,
  type EngineEvent,
  type EngineName,
  hasChanges,
  openStack,
  type Plan,
  type PreviewOptions,
  ProgramError,
  type Result,
  type Stack,
  UpdateFailedError,
  withoutValues,
} from "../engine/index.ts";
import { OutdatedPlanError } from "../review/reviewed/outdated.ts";
import { addStackFlags, createOption, type StackFlags, stackOptionsOf } from "./flags.ts";
import { addNoTestsFlag, hasPolicyTests, printTested, TESTS_FAILED, type Tested } from "./policyTestRun.ts";
import { type Colours, colours, progressLine, resultText } from "./render.ts";
import { OUTDATED, upAsReviewed } from "./reviewedPlan.ts";
import { addReplaceFlag, addTargetFlags, type TargetFlags, targetsOf } from "./targetFlags.ts";

type Flags = TargetFlags &
  StackFlags & {
    create?: boolean;
    replace?: string[];
    plan?: string;
    skipPreview?: boolean;
    json?: boolean;
    refresh?: boolean;
    yes?: boolean;
    clearPendingCreates?: boolean;
    tests?: boolean;
  };

/** Objects read between two lines that tell of it. */
const READS_PER_LINE = 100;

/** What drift found: the exit code of `gatehouse drift` where something differs. */
export const DRIFT_FOUND = 2;

/** What preview and drift do beside. */
const TESTING = "run the policy tests (*.policy.ts) beside the program on the namespace as it";

/** Adds preview, up, refresh, destroy and drift. */
export function addRunCommands(program: Command): void {
  const preview = addReplaceFlag(
    command(
      program,
      "preview",
      `show what up would do, and ${TESTING} will be; exits with 2 where one fails`,
    ),
  ).option("--refresh", "read the real objects first");
  addNoTestsFlag(preview.addOption(createOption())).action((folder: string, flags: Flags) =>
    run(
      folder,
      flags,
      (stack, _ask, values) => stack.preview({ ...updating(flags), values, create: flags.create ?? false }),
      { tested: "planned" },
    ),
  );
  addReplaceFlag(command(program, "up", "make what the program says real; a missing stack is made"))
    .option("--refresh", "read the real objects first, so that drift is repaired")
    .option("-y, --yes", "do not ask")
    .addOption(
      new Option(
        "--plan <file>",
        "do what review --save has written, or nothing: exits with 2 where the program, the state or the service " +
          "is no longer as it was reviewed; does not ask",
      ).conflicts(["refresh", "replace", "target", "targetDependents", "exclude", "excludeDependents"]),
    )
    .addOption(
      new Option(
        "--skip-preview",
        "run the program once: do not plan everything before anything is done, and do not ask",
      ).conflicts("plan"),
    )
    .action((folder: string, flags: Flags) =>
      run(folder, flags, (stack, ask) =>
        flags.plan === undefined
          ? stack.up({
              ...updating(flags),
              ...(flags.skipPreview ? { skipPreview: true } : ask("Do this?")),
            })
          : upAsReviewed(flags.plan, stack),
      ),
    );
  command(program, "refresh", "bring the state up to what really is")
    .option("--clear-pending-creates", "forget creations that were interrupted")
    .option("-y, --yes", "do not ask")
    .action((folder: string, flags: Flags) =>
      run(folder, flags, (stack, ask) =>
        stack.refresh({
          ...targetsOf(flags),
          clearPendingCreates: flags.clearPendingCreates ?? false,
          ...ask("Write this to the state?"),
        }),
      ),
    );
  command(program, "destroy", "delete all resources of the stack")
    .option("--refresh", "read the real objects first")
    .option("-y, --yes", "do not ask")
    .action((folder: string, flags: Flags) =>
      run(folder, flags, (stack, ask) =>
        stack.destroy({ ...targetsOf(flags), ...refreshing(flags), ...ask("Delete all this?") }),
      ),
    );
  const drift = command(
    program,
    "drift",
    `show what differs from the state, and ${TESTING} is; exits with 2 where something differs or a test fails`,
  );
  addNoTestsFlag(drift).action((folder: string, flags: Flags) =>
    run(folder, flags, (stack) => stack.drift(targetsOf(flags)), {
      tested: "live",
      code: (result) => (hasChanges(result) ? DRIFT_FOUND : 0),
    }),
  );
}

function command(program: Command, name: string, description: string): Command {
  return addStackFlags(addTargetFlags(program.command(name)))
    .description(description)
    .option("--json", "print the result as JSON");
}

function refreshing(flags: Flags): { refresh: boolean } {
  return { refresh: flags.refresh ?? false };
}

function updating(flags: Flags): PreviewOptions {
  return { ...targetsOf(flags), ...refreshing(flags), replace: flags.replace ?? [] };
}

type Ask = (question: string) => { confirm?: (plan: Plan) => Promise<boolean> };

type RunOptions = {
  /** What the policy tests beside the program are about. Default: they are not run. */
  tested?: Tested;
  code?: (result: Result) => number;
};

async function run(
  folder: string,
  flags: Flags,
  work: (stack: Stack, ask: Ask, withTests: boolean) => Promise<Result>,
  { tested, code = () => 0 }: RunOptions = {},
): Promise<void> {
  const abort = new AbortController();
  let engine: EngineName | undefined;
  let interrupted = false;
  const interrupt = (name: NodeJS.Signals): void => {
    if (interrupted) process.exit(130);
    interrupted = true;
    // Ctrl-C on a terminal reaches the CLI as well as us; a second one from us would make it stop at once.
    if (engine === "cli" && name === "SIGINT" && process.stdin.isTTY) return;
    process.stderr.write("Finishing what is in flight; interrupt again to stop at once.\n");
    abort.abort();
  };
  process.on("SIGINT", interrupt);
  process.on("SIGTERM", interrupt);
  const c = colours(process.stdout, process.env);
  const asks = !flags.yes && !flags.json && process.stdin.isTTY === true && process.stdout.isTTY === true;
  let ended: { stack: Stack; result: Result } | undefined;
  const ask: Ask = (question) => (asks ? { confirm: (plan) => confirm(c, plan, question) } : {});
  try {
    const stack = await openStack({
      ...stackOptionsOf(folder, flags),
      signal: abort.signal,
      onEvent: progress(flags.json ? colours(process.stderr, process.env) : c, flags.json ?? false),
    });
    engine = stack.engine;
    const withTests = tested !== undefined && flags.tests !== false && (await hasPolicyTests(folder));
    const result = await work(stack, ask, withTests);
    if (withTests) ended = { stack, result };
    else print(c, result, flags);
    process.exitCode = code(result);
  } catch (error) {
    const failed = report(c, error, flags);
    process.exitCode = interrupted ? 130 : failed;
  } finally {
    process.off("SIGINT", interrupt);
    process.off("SIGTERM", interrupt);
  }
  if (!ended || tested === undefined) return;
  const holds = await printTested({ ...ended, folder, json: flags.json ?? false }, tested);
  const exitCode = holds ? code(ended.result) : TESTS_FAILED;
  // What a policy test started and did not end would keep the process.
  process.stdout.write("", () => process.exit(exitCode));
}

function progress(c: Colours, toStderr: boolean): (event: EngineEvent) => void {
  const stream = toStderr ? process.stderr : process.stdout;
  let read = 0;
  return (event) => {
    if (event.kind === "finished" && event.op === "refresh") read += 1;
    const line = progressLine(c, event) ?? readLine(event, read);
    if (line !== undefined) stream.write(`${line}\n`);
  };
}

/** How far the reading has come, now and then. */
function readLine(event: EngineEvent, read: number): string | undefined {
  const due = event.kind === "finished" && event.op === "refresh" && read % READS_PER_LINE === 0;
  return due ? `   ${read} read` : undefined;
}

function print(c: Colours, result: Result, flags: Flags): void {
  const shown = withoutValues(result);
  process.stdout.write(`${flags.json ? JSON.stringify(shown, null, 2) : resultText(c, shown)}\n`);
}

function report(c: Colours, error: unknown, flags: Flags): number {
  if (!(error instanceof EngineError)) throw error;
  const result =
    error instanceof UpdateFailedError || error instanceof ProgramError || error instanceof CancelledError
      ? error.result
      : undefined;
  if (result && (flags.json || result.steps.length > 0)) print(c, result, flags);
  else if (flags.json) {
    const { code, message } = error;
    const more = error instanceof OutdatedPlanError ? { differences: error.differences } : {};
    process.stdout.write(`${JSON.stringify({ ok: false, error: { code, message, ...more } }, null, 2)}\n`);
  }
  process.stderr.write(`${colours(process.stderr, process.env).red(`error: ${error.message}`)}\n`);
  return error instanceof OutdatedPlanError ? OUTDATED : 1;
}

async function confirm(c: Colours, plan: Plan, question: string): Promise<boolean> {
  process.stdout.write(`${resultText(c, plan)}\n`);
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  try {
    return /^y(es)?$/i.test((await terminal.question(`${question} [y/N] `)).trim());
  } finally {
    terminal.close();
  }
}
