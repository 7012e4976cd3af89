import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { constants, homedir } from "node:os";
import { join } from "node:path";
import {
  backendUrlOf,
  ENDING_SIGNALS,
  EngineError,
  openStack,
  type Plan,
  type Result,
  RunError,
  type Stack,
} from "../engine/index.ts";
import type { Baseline } from "../review/reviewPlan.ts";
import type { Io } from "./commandOutput.ts";
import type { StackFlags } from "./flags.ts";
import { diagnosticText, isPrintedAtEnd } from "./render.ts";
import { openForReview, readerOptions } from "./service.ts";

interface RevisionFlags extends StackFlags {
  readonly refresh: boolean;
  readonly base: string;
  readonly head?: string;
}

export interface RevisionPlans {
  readonly plan: Plan;
  readonly stack: Stack;
  readonly configuration: ReadonlyMap<string, string>;
  readonly folder: string;
  readonly baseline: Baseline;
  /**
   * The command's streams, and its environment with the determined namespace. Pass this value, not the `io` of the
   * command, to all further work with the stack.
   */
  readonly io: Io;
}

interface Side {
  /** Title of the revision in messages: `the base revision main (0123456789)`. */
  readonly title: string;
  readonly folder: string;
  readonly stack: Stack;
}

/**
 * Previews two revisions of a program with the same state. The previews do not change the state.
 * Either both previews read the live objects, or neither preview does. So both plans revert the same drift, and a
 * comparison of the plans excludes drift.
 * @param temporary directory for the programs of the revisions. The directory must exist while the plans are used.
 * @throws EngineError with the title of the revision whose preview failed
 */
export async function revisionPlans(
  io: Io,
  folder: string,
  flags: RevisionFlags,
  temporary: string,
): Promise<RevisionPlans> {
  const { commitOf, openRepository } = await import("../revisions/repository.ts");
  const { revisionProgram, serviceDifferences } = await import("../revisions/revisionProgram.ts");
  const repository = openRepository(folder, io.env);
  const base = { name: flags.base, commit: commitOf(repository, flags.base, "--base") };
  const head =
    flags.head === undefined
      ? { name: "the working folder", commit: null }
      : { name: flags.head, commit: commitOf(repository, flags.head, "--head") };
  const opened = await openForReview(io, folder, flags);
  const { selector: stack } = opened.stack;
  const { env } = opened.io;
  // Both revisions use the backend of the working directory, even if the backend URL is relative or not set.
  const here = { ...io, env: { ...env, PULUMI_BACKEND_URL: await backendUrlOf(folder, env) } };
  const unknown: string[] = [];
  const open = async (side: "base" | "head", revision: typeof base | typeof head): Promise<Side> => {
    const { name, commit } = revision;
    const title =
      commit === null
        ? name
        : `the ${side} revision ${name}${name === commit ? "" : ` (${commit.slice(0, 10)})`}`;
    return withTitle(title, async () => {
      const checkedOut =
        commit === null
          ? { folder, unknown: [] }
          : await revisionProgram(repository, { name, commit }, { root: join(temporary, side), stack });
      unknown.push(...checkedOut.unknown);
      const { folder: program } = checkedOut;
      const options = readerOptions(here, program, { ...flags, stack });
      return { title, folder: program, stack: await openStack({ ...options, env: here.env }) };
    });
  };
  const [before, after] = [await open("base", base), await open("head", head)];
  if (before.stack.project !== after.stack.project) {
    throw new EngineError(
      "project",
      `Cannot compare the revisions: the project is ${before.stack.project} in ${before.title} and ` +
        `${after.stack.project} in ${after.title}, with separate states. Choose a base with the same project name.`,
    );
  }
  const baseline = { plan: await previewOf(io, before, flags), revisions: { base, head }, unknown };
  const plan = await previewOf(io, after, flags);
  const configuration = await after.stack.config();
  const differing = serviceDifferences(await before.stack.config(), configuration);
  unknown.push(
    ...differing.map(
      (key) => `${key} differs between the revisions: the review uses the value of ${after.title}`,
    ),
  );
  return { plan, stack: after.stack, configuration, folder: after.folder, baseline, io: opened.io };
}

async function previewOf({ stderr }: Io, { title, stack }: Side, { refresh }: RevisionFlags): Promise<Plan> {
  stderr.write(`Previewing ${title}\n`);
  return withTitle(title, () => stack.preview({ refresh, values: true, create: false }));
}

/** Returns the errors of the resources and of the program. */
const textOf = ({ diagnostics }: Result): string =>
  diagnostics.filter(isPrintedAtEnd).map(diagnosticText).join("\n");

async function withTitle<T>(title: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    const { code, field, remedy } = error;
    const causes = error instanceof RunError && error.isExplained ? textOf(error.result) : error.detail;
    throw new EngineError(code, `In ${title}: ${causes}`, { field, remedy, cause: error });
  }
}

/**
 * Calls `work` with a temporary directory that only this user can read, and removes the directory afterwards. Also
 * removes the directory if the process exits early or receives a signal that can be caught. The signal ends the process
 * immediately.
 */
export async function withTemporaryFolder<T>(
  env: NodeJS.ProcessEnv,
  work: (path: string) => Promise<T>,
): Promise<T> {
  // Node.js searches all parent directories for packages, so other users must not have write access to the parent
  // directories.
  const parent = join(env.XDG_CACHE_HOME || join(homedir(), ".cache"), "gatehouse");
  mkdirSync(parent, { recursive: true, mode: 0o700 });
  const path = mkdtempSync(join(realpathSync(parent), "review-"));
  // If the program is still running, it may write to the directory during the removal. So the removal is retried.
  const removeFiles = () => rmSync(path, { recursive: true, force: true, maxRetries: 5 });
  const leave = (name: (typeof ENDING_SIGNALS)[number]) => process.exit(128 + constants.signals[name]);
  process.on("exit", removeFiles);
  for (const name of ENDING_SIGNALS) process.on(name, leave);
  try {
    return await work(path);
  } finally {
    process.off("exit", removeFiles);
    for (const name of ENDING_SIGNALS) process.off(name, leave);
    removeFiles();
  }
}
