import {
  ENDING_SIGNALS,
  EngineError,
  type EngineEvent,
  openStack,
  type Plan,
  UpdateFailedError,
} from "../engine/index.ts";
import { printable } from "../words.ts";
import { type CommandOutput, type Io, type Output, printError } from "./commandOutput.ts";
import { type StackFlags, stackOptionsOf } from "./flags.ts";
import { ask, canPrompt } from "./prompt.ts";
import { type Colors, colors, progressLine, resultText } from "./render.ts";
import {
  openOnService,
  requireService,
  type Service,
  type StackOnService,
  withReleaseNote,
} from "./service.ts";

export interface RunFlags extends StackFlags {
  readonly json?: boolean;
  readonly yes?: boolean;
  readonly offline?: boolean;
  readonly tests?: boolean;
  readonly allowIncomplete?: boolean;
  /** Name of the namespace to use if no namespace is configured. The namespace is created if it does not exist. */
  readonly createNamespace?: string;
  readonly skipPreview?: boolean;
}

const READS_PER_LINE = 100;

/**
 * The stack of a command, with functions that prompt the user and report progress. With `--offline`, `service` is
 * undefined.
 */
export interface Running extends StackOnService {
  /** The stream for progress messages: the standard error if the result is JSON, otherwise the standard output. */
  readonly progress: Output;
  /**
   * Returns engine options that prompt the user to confirm a plan. Returns empty options if the command does not
   * prompt.
   */
  readonly prompt: (question: string) => { readonly confirm?: (plan: Plan) => Promise<boolean> };
  /** Prompts the user to confirm one action. Undefined if the command does not prompt. */
  readonly confirmOne: ((question: string) => Promise<boolean>) | undefined;
  /**
   * Runs the preflight checks of a plan, which read the service to check that the plan can be applied. The plan must
   * contain values.
   * @throws UpdateFailedError if the plan cannot be applied
   */
  readonly preflight: (plan: Plan) => Promise<void>;
}

/**
 * Opens a stack and calls `work` with the stack. After the first SIGINT, SIGTERM or SIGHUP, the operations in flight
 * finish. The second signal ends the process.
 * @param flags `isWriting`: true if `work` writes to the service or the state, so that the user must confirm the
 * changes
 */
export async function withStack(
  io: Io,
  folder: string,
  flags: RunFlags & { readonly isWriting?: boolean | undefined },
  work: (running: Running) => Promise<CommandOutput>,
): Promise<CommandOutput> {
  const { stdout, stderr, env } = io;
  const prompts = !flags.yes && !flags.json && canPrompt(io);
  if (flags.isWriting && !flags.yes && !prompts) throw confirmationRequired(flags);
  const abort = new AbortController();
  const interrupt = (): void => {
    if (abort.signal.aborted) process.exit(130);
    stderr.write("Finishing the operations in flight. Interrupt again to stop at once.\n");
    abort.abort();
  };
  for (const name of ENDING_SIGNALS) process.on(name, interrupt);
  let service: Service | undefined;
  try {
    const progress = flags.json ? stderr : stdout;
    const options = {
      ...stackOptionsOf(folder, flags),
      signal: abort.signal,
      onEvent: printProgress(progress, colors(progress, env)),
    };
    // With `--offline`, the checks of a preview do not wait for the service.
    const opened = flags.offline
      ? {
          stack: await openStack({ ...options, env: { ...env, GATEHOUSE_RETRY_TIMEOUT: "0" } }),
          service: undefined,
          io,
        }
      : await openOnService(io, options, createNamespaceOf(flags, prompts));
    service = opened.service;
    if (service) progress.write(`Namespace: ${service.text}\n`);
    return await work({
      ...opened,
      progress,
      confirmOne: prompts ? (question) => ask(io, question) : undefined,
      prompt: (question) => (prompts ? { confirm: (plan) => confirm(io, plan, question) } : {}),
      preflight: async (plan) => {
        if (!flags.offline) await requirePossible(opened, plan);
      },
    });
  } catch (error) {
    if (!abort.signal.aborted) throw error;
    printError(io, error, { json: flags.json === true, verbose: flags.verbose === true });
    return { exitCode: 130 };
  } finally {
    await service?.connection.client.close();
    for (const name of ENDING_SIGNALS) process.off(name, interrupt);
  }
}

/** @param prompts true if the command asks for a confirmation before it changes anything */
function createNamespaceOf({ createNamespace: name, skipPreview }: RunFlags, prompts: boolean) {
  return name === undefined ? undefined : { name, isConfirmed: !prompts || skipPreview === true };
}

const confirmationRequired = ({ json }: RunFlags): EngineError =>
  new EngineError(
    "confirmation_required",
    `This run makes changes and needs a confirmation, but ${json ? "--json does not prompt" : "the standard input or output is not a terminal"}. Add --yes, or apply a reviewed plan with up --plan. Nothing was changed.`,
  );

async function requirePossible({ io, service }: StackOnService, plan: Plan): Promise<void> {
  const { definitionOf } = await import("../namespace/liveObjects.ts");
  if (plan.steps.every((step) => step.op === "same" || !definitionOf(step))) return;
  const required = requireService(service);
  const { connection } = required;
  const { planProblems } = await import("../review/guards/planProblems.ts");
  const planned = await withReleaseNote(io, connection, () => planProblems(connection, plan, required));
  const problems = planned.map(({ text }) => printable(text));
  if (problems.length === 0) return;
  const [first, ...others] = problems;
  const text = others.length === 0 ? `${first}` : `\n${problems.map((problem) => `  ${problem}`).join("\n")}`;
  throw new UpdateFailedError(`Preflight failed: ${text}`, { ...plan, ok: false });
}

function printProgress(stream: Output, c: Colors): (event: EngineEvent) => void {
  let read = 0;
  return (event) => {
    const isRead = event.kind === "finished" && event.op === "refresh";
    if (isRead) read += 1;
    const count = isRead && read % READS_PER_LINE === 0 ? `   ${read} read` : undefined;
    const line = progressLine(c, event) ?? count;
    if (line !== undefined) stream.write(`${line}\n`);
  };
}

async function confirm(io: Io, plan: Plan, question: string): Promise<boolean> {
  io.stdout.write(`${resultText(colors(io.stdout, io.env), plan)}\n`);
  return ask(io, question);
}
