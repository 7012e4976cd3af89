import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { constants, homedir } from "node:os";
import { join } from "node:path";
import {
  backendUrlOf,
  ENDING_SIGNALS,
  EngineError,
  openStack,
  type Plan,
  type Stack,
} from "../engine/index.ts";
import type { Baseline } from "../review/reviewPlan.ts";
import type { StackFlags } from "./flags.ts";
import type { Io } from "./outcome.ts";
import { openForReview, readerOptions } from "./service.ts";

export interface RevisionFlags extends StackFlags {
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
  /** Its settings name the namespace. Use it for everything that follows. */
  readonly io: Io;
}

interface Side {
  /** `Base revision main (0123456789)`. */
  readonly title: string;
  readonly folder: string;
  readonly stack: Stack;
}

/**
 * Previews two revisions of a program on one state, which is only read. Either both previews read the live objects, or
 * neither does: then both plans undo the same drift, and it is no difference between them.
 * @param temporary a folder for the programs of the revisions, which must exist while the plans are used
 * @throws EngineError saying which of the two previews has failed
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
  // A relative backend, or none, means the same for both revisions: it is looked up from the working folder.
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
      `The project is called ${before.stack.project} in ${before.title} and ${after.stack.project} in ${after.title}: ` +
        "each has a state of its own, so that they cannot be compared.",
    );
  }
  const baseline = { plan: await previewOf(io, before, flags), revisions: { base, head }, unknown };
  const plan = await previewOf(io, after, flags);
  const configuration = await after.stack.config();
  const differing = serviceDifferences(await before.stack.config(), configuration);
  unknown.push(
    ...differing.map(
      (key) => `${key} differs: what is live is read where the configuration of ${after.title} says`,
    ),
  );
  return { plan, stack: after.stack, configuration, folder: after.folder, baseline, io: opened.io };
}

async function previewOf({ stderr }: Io, { title, stack }: Side, { refresh }: RevisionFlags): Promise<Plan> {
  stderr.write(`Previewing ${title}\n`);
  return withTitle(title, () => stack.preview({ refresh, values: true, create: false }));
}

async function withTitle<T>(title: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    const { code, detail, field, remedy } = error;
    throw new EngineError(code, `In ${title}: ${detail}`, { field, remedy, cause: error });
  }
}

/**
 * Does work with a temporary folder that only this user can read. It is also removed when this process ends earlier, by
 * itself or by a signal that can be caught; such a signal ends the process at once.
 */
export async function withTemporaryFolder<T>(
  env: NodeJS.ProcessEnv,
  work: (path: string) => Promise<T>,
): Promise<T> {
  // Not below a folder where all users may write: Node looks for packages in all folders above.
  const above = join(env.XDG_CACHE_HOME || join(homedir(), ".cache"), "gatehouse");
  mkdirSync(above, { recursive: true, mode: 0o700 });
  const path = mkdtempSync(join(realpathSync(above), "review-"));
  // With retries: programs that are being ended may still write to it.
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
