import { type Command, Option } from "@commander-js/extra-typings";
import {
  hasChanges,
  makeUrn,
  OWN_DYNAMIC,
  type Plan,
  type PreviewOptions,
  type Result,
  type Stack,
  type Step,
} from "../engine/index.ts";
import { printable } from "../words.ts";
import { type ActionOf, type CommandOutput, type Io, type Output, runOutput } from "./commandOutput.ts";
import {
  addStackFlags,
  addTargetFlags,
  allowIncompleteOption,
  createOption,
  deleteClaimedOption,
  type FlagsOf,
  JSON_RESULT,
  noTestsOption,
  replaceOption,
  requireEnforcedExpiryOption,
  targetsOf,
  withClaimedFlag,
  withExpiryFlag,
  YES,
} from "./flags.ts";
import { addHelp } from "./help.ts";
import { upAsReviewed } from "./planFiles.ts";
import { hasPolicyTests, runPolicyTests, TESTING } from "./policyTests.ts";
import { resourcesOf, type Service } from "./service.ts";
import { type Running, withStack } from "./withStack.ts";

const GROUP = { group: "Apply a program:" } as const;

export function addRunCommands(program: Command, action: ActionOf): void {
  addHelp(previewCommand(program).action(action(preview)), {
    ...GROUP,
    summary: "Preview the changes.",
    description: `${TESTING} planned namespaces. Exits 2 if a test fails, or if the plan changes a namespace without a test.`,
    examples: [
      "gatehouse preview policy --stack prod",
      "gatehouse preview policy --stack prod --json > plan.json",
      "gatehouse preview policy --stack new --create",
    ],
    page: "docs/reference/resources.md",
  });
  addHelp(upCommand(program).action(action(up)), {
    ...GROUP,
    summary: "Apply the program. Creates the stack if it does not exist.",
    examples: [
      "gatehouse up policy --stack prod",
      "gatehouse up policy --stack prod --yes     # in a pipeline",
      "gatehouse up policy --stack prod --plan reviewed.plan",
    ],
    page: "docs/guides/review.md",
  });
  addHelp(refreshCommand(program).action(action(refresh)), {
    ...GROUP,
    summary: "Update the state from the live service.",
    examples: ["gatehouse refresh policy --stack prod", "gatehouse refresh policy --stack prod --yes"],
    page: "docs/guides/drift.md",
  });
  addHelp(destroyCommand(program).action(action(destroy)), {
    ...GROUP,
    summary: "Delete all resources of the stack.",
    examples: [
      "gatehouse destroy policy --stack test",
      "gatehouse destroy policy --stack test --target '**::ana'",
    ],
    page: "docs/reference/resources.md",
  });
}

const REFRESH = "Read the live objects first";

const runCommand = (program: Command, name: string) =>
  addStackFlags(addTargetFlags(program.command(name))).option("--json", JSON_RESULT);

const previewCommand = (program: Command) =>
  runCommand(program, "preview")
    .addOption(replaceOption())
    .option("--refresh", REFRESH)
    .option("--offline", "Do not contact the service; skip the preflight checks and the policy tests")
    .addOption(createOption())
    .addOption(allowIncompleteOption())
    .addOption(requireEnforcedExpiryOption())
    .addOption(noTestsOption());

const upCommand = (program: Command) =>
  runCommand(program, "up")
    .addOption(replaceOption())
    .option("--refresh", `${REFRESH}, and revert drift`)
    .addOption(requireEnforcedExpiryOption())
    .addOption(deleteClaimedOption())
    .option("-y, --yes", YES)
    .addOption(
      new Option(
        "--plan <file>",
        "Apply the plan that review --save wrote, without confirmation. Exit with code 2 and change nothing if the " +
          "program, the state or the service has changed since the review",
      ).conflicts(["refresh", "replace", "target", "targetDependents", "exclude", "excludeDependents"]),
    )
    .addOption(
      new Option(
        "--skip-preview",
        "Run the program once, without a preview and without confirmation",
      ).conflicts("plan"),
    )
    .addOption(
      new Option(
        "--create-namespace <name>",
        "Namespace for resources that do not set tenant, if no namespace is configured. After the confirmation, the namespace is created unless the user is already a member of a namespace with this name",
      ).conflicts("plan"),
    );

const refreshCommand = (program: Command) =>
  runCommand(program, "refresh")
    .option("--clear-pending-creates", "Remove interrupted create operations from the state")
    .option("-y, --yes", YES);

const destroyCommand = (program: Command) =>
  runCommand(program, "destroy")
    .option("--refresh", REFRESH)
    .addOption(deleteClaimedOption())
    .option("-y, --yes", YES);

type UpdateFlags = FlagsOf<typeof previewCommand> | FlagsOf<typeof upCommand>;

const updateOptions = (flags: UpdateFlags): PreviewOptions => ({
  ...targetsOf(flags),
  refresh: flags.refresh ?? false,
  replace: flags.replace ?? [],
});

function preview(io: Io, folder: string, flags: FlagsOf<typeof previewCommand>): Promise<CommandOutput> {
  return withStack(withExpiryFlag(io, flags), folder, flags, async ({ io: onService, stack, preflight }) => {
    const hasTests = await hasPolicyTests(folder, flags);
    const { create = false } = flags;
    const plan = await stack.preview({ ...updateOptions(flags), values: true, create });
    await preflight(plan);
    const policyTests = async () =>
      runPolicyTests(onService, folder, flags, await stack.config(), { planned: { plan } });
    return { ...runOutput(io, plan), policyTests: hasTests ? policyTests : undefined };
  });
}

function up(io: Io, folder: string, flags: FlagsOf<typeof upCommand>): Promise<CommandOutput> {
  const { plan: planFile, skipPreview = false } = flags;
  const isWriting = planFile === undefined;
  const withFlags = withClaimedFlag(withExpiryFlag(io, flags), flags);
  return withStack(withFlags, folder, { ...flags, isWriting }, async (running) => {
    if (planFile !== undefined) return runOutput(io, await upAsReviewed(running.io, planFile, running.stack));
    return applyProgram(io, running, updateOptions(flags), skipPreview);
  });
}

/** Applies a program after a preview, the preflight checks and a confirmation. */
export async function applyProgram(
  io: Io,
  { stack, service, preflight, prompt, progress }: Running,
  options: PreviewOptions,
  skipPreview = false,
): Promise<CommandOutput> {
  const planned = service?.planned;
  const whole = <R extends Result>(result: R): R => (planned ? withNamespace(result, planned.name) : result);
  let isConfirmed = skipPreview;
  const confirm = async (given: Plan) => {
    const plan = whole(given);
    await preflight(plan);
    isConfirmed = (await prompt("Apply these changes?").confirm?.(plan)) ?? true;
    return isConfirmed;
  };
  let isCreated = false;
  const prepare = async (): Promise<Record<string, string>> => {
    if (!planned) return {};
    const tenant = await planned.create();
    if (!isCreated) progress.write(`Created the namespace ${printable(planned.name)} (${tenant}).\n`);
    isCreated = true;
    return { GATEHOUSE_TENANT: tenant };
  };
  const how = skipPreview ? { skipPreview } : { values: true, confirm, prepare };
  try {
    const result = await stack.up({ ...options, ...how });
    if (service && hasChanges(result)) await reportForgotten(progress, stack, service);
    return runOutput(io, isCreated ? whole(result) : result);
  } finally {
    // The namespace is written to the stack's configuration even if the run failed, since a failed run may also have
    // created objects in the namespace.
    const note = isConfirmed && (!planned || isCreated) ? await service?.pin() : undefined;
    if (note !== undefined) progress.write(`${note}\n`);
  }
}

/** Prints the objects that the stack declared earlier but that its state no longer contains. */
async function reportForgotten(progress: Output, stack: Stack, { connection }: Service): Promise<void> {
  const { objectText } = await import("../namespace/liveObjects.ts");
  const { forgottenObjects } = await import("../namespace/forgotten.ts");
  // The cached lists are outdated: the run changed objects, possibly in a different process.
  await connection.forget();
  for (const object of await forgottenObjects(connection, await resourcesOf(stack, connection), stack)) {
    const text = `${objectText(object)} was declared by this stack earlier, and its state does not contain the object`;
    progress.write(`${printable(text)}. Adopt it, or delete it with drift --repair --delete-forgotten.\n`);
  }
}

/** Returns a plan or result whose first step is the creation of the namespace. */
function withNamespace<R extends Result>(result: R, name: string): R {
  const type = `${OWN_DYNAMIC}Namespace`;
  const step: Step = {
    op: "create",
    urn: makeUrn(result.stack, result.project, "", type, name),
    type,
    name,
    fields: [{ path: "name", new: name }],
    after: { inputs: { name }, outputs: { name } },
  };
  const summary = { ...result.summary, create: result.summary.create + 1 };
  return { ...result, steps: [step, ...result.steps], summary };
}

function refresh(io: Io, folder: string, flags: FlagsOf<typeof refreshCommand>): Promise<CommandOutput> {
  const { clearPendingCreates = false } = flags;
  return withStack(io, folder, { ...flags, isWriting: true }, async ({ stack, prompt }) => {
    const options = { ...targetsOf(flags), clearPendingCreates, ...prompt("Update the state?") };
    return runOutput(io, await stack.refresh(options));
  });
}

function destroy(io: Io, folder: string, flags: FlagsOf<typeof destroyCommand>): Promise<CommandOutput> {
  return withStack(
    withClaimedFlag(io, flags),
    folder,
    { ...flags, isWriting: true },
    async ({ stack, prompt }) => {
      const { refresh = false } = flags;
      const options = { ...targetsOf(flags), refresh, ...prompt("Delete these resources?") };
      return runOutput(io, await stack.destroy(options));
    },
  );
}
