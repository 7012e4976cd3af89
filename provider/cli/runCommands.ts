import { createInterface } from "node:readline/promises";
import { type Command, Option } from "commander";
import {
  EngineError,
  type EngineEvent,
  type EngineName,
  hasChanges,
  openStack,
  type Plan,
  type PreviewOptions,
  type Result,
  RunError,
  type Stack,
  UpdateFailedError,
  withoutValues,
} from "../engine/index.ts";
import { OutdatedPlanError } from "../review/savedPlan/OutdatedPlanError.ts";
import {
  addReplaceFlag,
  addStackFlags,
  addTargetFlags,
  createOption,
  type StackFlags,
  stackOptionsOf,
  type TargetFlags,
  targetsOf,
} from "./flags.ts";
import type { ActionOf, Io, Output } from "./io.ts";
import { openOnService, type Service } from "./openOnService.ts";
import { addNoTestsFlag, hasPolicyTests, printTested, TESTS_FAILED, type Tested } from "./policyTestRun.ts";
import { type Colours, colours, progressLine, resultText } from "./render.ts";
import { OUTDATED, upAsReviewed } from "./reviewedPlan.ts";
import { tellingOf } from "./withConnection.ts";

interface Flags extends TargetFlags, StackFlags {
  readonly create?: boolean;
  readonly replace?: string[];
  readonly plan?: string;
  readonly skipPreview?: boolean;
  readonly json?: boolean;
  readonly refresh?: boolean;
  readonly yes?: boolean;
  readonly clearPendingCreates?: boolean;
  readonly createNamespace?: string;
  readonly offline?: boolean;
  readonly tests?: boolean;
}

/** How many objects are read before a line says so. */
const READS_PER_LINE = 100;

/** The exit code of `gatehouse drift` where something differs from the state. */
export const DRIFT_FOUND = 2;

/** What preview and drift do beside, within their descriptions. */
const TESTING = "run the policy tests (*.policy.ts) beside the program on the namespace as it";

/** Adds preview, up, refresh, destroy and drift. */
export function addRunCommands(program: Command, action: ActionOf): void {
  const preview = addReplaceFlag(
    command(
      program,
      "preview",
      `show what up would do, and ${TESTING} will be; exits with 2 where one fails`,
    ),
  )
    .option("--refresh", "read the real objects first")
    .option("--offline", "do not ask the service whether it would do this; no policy tests");
  addNoTestsFlag(preview.addOption(createOption())).action(
    action((io, folder: string, flags: Flags) =>
      run(
        io,
        folder,
        flags,
        async ({ stack, check }) => {
          const plan = await stack.preview({
            ...updating(flags),
            values: true,
            create: flags.create ?? false,
          });
          await check(plan);
          return plan;
        },
        { tested: "planned" },
      ),
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
    .addOption(
      new Option(
        "--create-namespace <name>",
        "for a user who is in none: make this one, for the resources that name none",
      ).conflicts("plan"),
    )
    .action(action(up));
  command(program, "refresh", "bring the state up to what really is")
    .option("--clear-pending-creates", "forget creations that were interrupted")
    .option("-y, --yes", "do not ask")
    .action(
      action((io, folder: string, flags: Flags) =>
        run(io, folder, flags, ({ stack, ask }) =>
          stack.refresh({
            ...targetsOf(flags),
            clearPendingCreates: flags.clearPendingCreates ?? false,
            ...ask("Write this to the state?"),
          }),
        ),
      ),
    );
  command(program, "destroy", "delete all resources of the stack")
    .option("--refresh", "read the real objects first")
    .option("-y, --yes", "do not ask")
    .action(
      action((io, folder: string, flags: Flags) =>
        run(io, folder, flags, ({ stack, ask }) =>
          stack.destroy({ ...targetsOf(flags), ...refreshing(flags), ...ask("Delete all this?") }),
        ),
      ),
    );
  const drift = command(
    program,
    "drift",
    `show what differs from the state, and ${TESTING} is; exits with 2 where something differs or a test fails`,
  );
  addNoTestsFlag(drift).action(
    action((io, folder: string, flags: Flags) =>
      run(io, folder, flags, ({ stack }) => stack.drift(targetsOf(flags)), {
        tested: "live",
        code: (result) => (hasChanges(result) ? DRIFT_FOUND : 0),
      }),
    ),
  );
}

/** Makes what the program says real. */
function up(io: Io, folder: string, flags: Flags): Promise<number> {
  const update = async ({ io: onService, stack, check, ask, pin }: Running) => {
    if (flags.plan !== undefined) return upAsReviewed(onService, flags.plan, stack);
    let isAgreed = flags.skipPreview === true;
    const confirm = async (plan: Plan) => {
      await check(plan);
      isAgreed = (await ask("Do this?").confirm?.(plan)) ?? true;
      return isAgreed;
    };
    const how = flags.skipPreview ? { skipPreview: true } : { values: true, confirm };
    try {
      const result = await stack.up({ ...updating(flags), ...how });
      isAgreed = true;
      return result;
    } finally {
      // Also after a run that failed halfway: its objects are in that namespace.
      if (isAgreed) await pin();
    }
  };
  return run(io, folder, flags, update, { createNamespace: flags.createNamespace });
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

/** What a command works with. */
interface Running {
  /** The settings in it name the namespace. */
  readonly io: Io;
  readonly stack: Stack;
  readonly ask: Ask;
  /**
   * Asks the service whether it would do what a plan with values says.
   * @throws UpdateFailedError when it would not
   */
  readonly check: (plan: Plan) => Promise<void>;
  /** Writes the namespace of the run into the stack's configuration. */
  readonly pin: () => Promise<void>;
}

interface RunOptions {
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
  readonly code?: (result: Result) => number;
}

async function run(
  io: Io,
  folder: string,
  flags: Flags,
  work: (running: Running) => Promise<Result>,
  { tested, createNamespace, code = () => 0 }: RunOptions = {},
): Promise<number> {
  const { stdin, stdout, stderr, env } = io;
  const abort = new AbortController();
  let engine: EngineName | undefined;
  let interrupted = false;
  const interrupt = (name: NodeJS.Signals): void => {
    if (interrupted) process.exit(130);
    interrupted = true;
    // Ctrl-C on a terminal reaches the CLI as well as us; a second one from us would make it stop at once.
    if (engine === "cli" && name === "SIGINT" && stdin.isTTY) return;
    stderr.write("Finishing what is in flight; interrupt again to stop at once.\n");
    abort.abort();
  };
  process.on("SIGINT", interrupt);
  process.on("SIGTERM", interrupt);
  const asks = !flags.yes && !flags.json && stdin.isTTY === true && stdout.isTTY === true;
  let toTest: (() => Promise<boolean>) | undefined;
  const ask: Ask = (question) => (asks ? { confirm: (plan) => confirm(io, plan, question) } : {});
  let service: Service | undefined;
  let exitCode: number;
  try {
    const told = flags.json ? stderr : stdout;
    const options = {
      ...stackOptionsOf(folder, flags),
      signal: abort.signal,
      onEvent: progress(told, colours(told, env)),
    };
    const opened = flags.offline
      ? { stack: await openStack({ ...options, env }), service: undefined, io }
      : await openOnService(io, options, createNamespace);
    const { stack } = opened;
    service = opened.service;
    engine = stack.engine;
    if (service) told.write(`Namespace: ${service.text}\n`);
    const withTests =
      tested !== undefined && flags.tests !== false && !flags.offline && (await hasPolicyTests(folder));
    const check = (plan: Plan) =>
      flags.offline ? Promise.resolve() : requirePossible(stderr, opened.service, plan);
    const pin = async () => {
      const said = await opened.service?.pin();
      if (said !== undefined) told.write(`${said}\n`);
    };
    const result = await work({ io: opened.io, stack, ask, check, pin });
    if (withTests) {
      const ended = { folder, stack, result, json: flags.json ?? false };
      toTest = () => printTested(opened.io, ended, tested);
    } else print(io, result, flags);
    exitCode = code(result);
  } catch (error) {
    const failed = report(io, await asEngineError(error), flags);
    exitCode = interrupted ? 130 : failed;
  } finally {
    await service?.connection.client.close();
    process.off("SIGINT", interrupt);
    process.off("SIGTERM", interrupt);
  }
  if (toTest && !(await toTest())) return TESTS_FAILED;
  return exitCode;
}

/** Errors of the service and of the settings as those of an engine; all others as they are. */
async function asEngineError(error: unknown): Promise<unknown> {
  if (error instanceof EngineError) return error;
  const { GatehouseError } = await import("@gatehouse-access/sdk");
  const { printable } = await import("../review/words/printable.ts");
  if (!(error instanceof GatehouseError)) return error;
  return new EngineError("service", printable(error.message), { cause: error });
}

/**
 * Asks the service whether it would do what a plan says.
 * @throws UpdateFailedError naming what it would not do
 */
async function requirePossible(stderr: Output, service: Service | undefined, plan: Plan): Promise<void> {
  const { definitionOf } = await import("../review/steps.ts");
  if (plan.steps.every((step) => step.op === "same" || !definitionOf(step))) return;
  if (!service) {
    throw new EngineError(
      "service",
      "GATEHOUSE_URL: set it, or gatehouse:url in the stack's configuration, to the address of the service, for example https://access.example.org",
    );
  }
  const { planProblems } = await import("../review/guards/planProblems.ts");
  const { printable } = await import("../review/words/printable.ts");
  const found = await tellingOf(stderr, service.connection, () =>
    planProblems(service.connection, plan, service),
  );
  const problems = found.map(printable);
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

function print({ stdout, env }: Io, result: Result, flags: Flags): void {
  const shown = withoutValues(result);
  const text = flags.json ? JSON.stringify(shown, null, 2) : resultText(colours(stdout, env), shown);
  stdout.write(`${text}\n`);
}

function report(io: Io, error: unknown, flags: Flags): number {
  if (!(error instanceof EngineError)) throw error;
  const result = error instanceof RunError ? error.result : undefined;
  if (result && (flags.json || result.steps.length > 0)) print(io, result, flags);
  else if (flags.json) {
    const { code, message } = error;
    const more = error instanceof OutdatedPlanError ? { differences: error.differences } : {};
    io.stdout.write(`${JSON.stringify({ ok: false, error: { code, message, ...more } }, null, 2)}\n`);
  }
  io.stderr.write(`${colours(io.stderr, io.env).red(`error: ${error.message}`)}\n`);
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
