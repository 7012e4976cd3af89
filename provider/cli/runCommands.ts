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
import { type ActionOf, type Io, type Outcome, runOutcome } from "./outcome.ts";
import { upAsReviewed } from "./planFiles.ts";
import { addNoTestsFlag, hasPolicyTests, runPolicyTests, TESTING } from "./policyTests.ts";
import { type RunFlags, withStack } from "./withStack.ts";

interface Flags extends TargetFlags, RunFlags {
  readonly create?: boolean;
  readonly replace?: string[];
  readonly plan?: string;
  readonly skipPreview?: boolean;
  readonly refresh?: boolean;
  readonly clearPendingCreates?: boolean;
}

export function addRunCommands(program: Command, action: ActionOf): void {
  const previewCommand = command(
    program,
    "preview",
    `show what up would do, and ${TESTING} will be; exits with 2 where one fails`,
  );
  addReplaceFlag(previewCommand)
    .option("--refresh", "read the real objects first")
    .option("--offline", "do not ask the service whether it would do this; no policy tests")
    .addOption(createOption())
    .addOption(allowUnseenOption());
  addNoTestsFlag(previewCommand).action(action(preview));
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
    .action(action(refresh));
  command(program, "destroy", "delete all resources of the stack")
    .option("--refresh", "read the real objects first")
    .option("-y, --yes", YES)
    .action(action(destroy));
}

function command(program: Command, name: string, description: string): Command {
  return addStackFlags(addTargetFlags(program.command(name)))
    .description(description)
    .option("--json", "print the result as JSON");
}

const updateOptions = (flags: Flags): PreviewOptions => ({
  ...targetsOf(flags),
  refresh: flags.refresh ?? false,
  replace: flags.replace ?? [],
});

function preview(io: Io, folder: string, flags: Flags): Promise<Outcome> {
  return withStack(io, folder, flags, async ({ io: onService, stack, preflight }) => {
    const hasTests = await hasPolicyTests(folder, flags);
    const { create = false } = flags;
    const plan = await stack.preview({ ...updateOptions(flags), values: true, create });
    await preflight(plan);
    const policyTests = async () => runPolicyTests(onService, folder, flags, await stack.config(), { plan });
    return { ...runOutcome(io, plan), policyTests: hasTests ? policyTests : undefined };
  });
}

function up(io: Io, folder: string, flags: Flags): Promise<Outcome> {
  const { plan: planFile, skipPreview = false } = flags;
  const isWriting = planFile === undefined;
  return withStack(io, folder, { ...flags, isWriting }, async (running) => {
    const { stack, service, preflight, prompt, progress } = running;
    if (planFile !== undefined) return runOutcome(io, await upAsReviewed(running.io, planFile, stack));
    let isConfirmed = skipPreview;
    const confirm = async (plan: Plan) => {
      await preflight(plan);
      isConfirmed = (await prompt("Do this?").confirm?.(plan)) ?? true;
      return isConfirmed;
    };
    const how = skipPreview ? { skipPreview } : { values: true, confirm };
    try {
      const result = await stack.up({ ...updateOptions(flags), ...how });
      isConfirmed = true;
      return runOutcome(io, result);
    } finally {
      // Also after a run that failed halfway: its objects are in that namespace.
      const note = isConfirmed ? await service?.pin() : undefined;
      if (note !== undefined) progress.write(`${note}\n`);
    }
  });
}

function refresh(io: Io, folder: string, flags: Flags): Promise<Outcome> {
  const { clearPendingCreates = false } = flags;
  return withStack(io, folder, { ...flags, isWriting: true }, async ({ stack, prompt }) => {
    const options = { ...targetsOf(flags), clearPendingCreates, ...prompt("Write this to the state?") };
    return runOutcome(io, await stack.refresh(options));
  });
}

function destroy(io: Io, folder: string, flags: Flags): Promise<Outcome> {
  return withStack(io, folder, { ...flags, isWriting: true }, async ({ stack, prompt }) => {
    const { refresh = false } = flags;
    const options = { ...targetsOf(flags), refresh, ...prompt("Delete all this?") };
    return runOutcome(io, await stack.destroy(options));
  });
}
