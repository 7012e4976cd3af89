import { type Command, Option } from "commander";
import type { Plan, PreviewOptions } from "../engine/index.ts";
import {
  addReplaceFlag,
  addStackFlags,
  addTargetFlags,
  allowUnseenOption,
  createOption,
  type TargetFlags,
  targetsOf,
  YES,
} from "./flags.ts";
import type { ActionOf, Io } from "./io.ts";
import { addNoTestsFlag, TESTING } from "./policyTestRun.ts";
import { upAsReviewed } from "./reviewedPlan.ts";
import { type RunFlags, type Running, run } from "./run.ts";

interface Flags extends TargetFlags, RunFlags {
  readonly create?: boolean;
  readonly replace?: string[];
  readonly plan?: string;
  readonly skipPreview?: boolean;
  readonly refresh?: boolean;
  readonly clearPendingCreates?: boolean;
  readonly createNamespace?: string;
}

/** Adds preview, up, refresh and destroy. */
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
  addNoTestsFlag(preview.addOption(createOption()).addOption(allowUnseenOption())).action(
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
    .option("-y, --yes", YES)
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
        "run the program once: do not plan everything before anything is done, and do not ask at a terminal",
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
    .option("-y, --yes", YES)
    .action(
      action((io, folder: string, flags: Flags) =>
        run(
          io,
          folder,
          flags,
          ({ stack, ask }) =>
            stack.refresh({
              ...targetsOf(flags),
              clearPendingCreates: flags.clearPendingCreates ?? false,
              ...ask("Write this to the state?"),
            }),
          { isWriting: true },
        ),
      ),
    );
  command(program, "destroy", "delete all resources of the stack")
    .option("--refresh", "read the real objects first")
    .option("-y, --yes", YES)
    .action(
      action((io, folder: string, flags: Flags) =>
        run(
          io,
          folder,
          flags,
          ({ stack, ask }) =>
            stack.destroy({ ...targetsOf(flags), ...refreshing(flags), ...ask("Delete all this?") }),
          { isWriting: true },
        ),
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
  // Whoever saved a plan has agreed to it.
  const isWriting = flags.plan === undefined;
  return run(io, folder, flags, update, { createNamespace: flags.createNamespace, isWriting });
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
