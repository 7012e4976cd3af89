import { Argument, type Command } from "@commander-js/extra-typings";
import { EngineError, type Result, type Stack, summarize, urnName } from "../engine/index.ts";
import type { OwnResource } from "../namespace/coverage.ts";
import type { Connection } from "../service/connection.ts";
import { printable } from "../words.ts";
import { type ActionOf, type CommandOutput, type Io, runOutput } from "./commandOutput.ts";
import { addRunFlags, type FlagsOf, FOLDER, JSON_RESULT, YES } from "./flags.ts";
import { addHelp } from "./help.ts";
import { applyProgram } from "./runCommands.ts";
import { requireResources, requireService } from "./service.ts";
import { withStack } from "./withStack.ts";

type Flags = FlagsOf<typeof rotateCommand>;

const NOTES = `
Without <key>, the command changes only the keys that need it: it replaces keys
that expire within rotateBefore days, have expired or no longer exist, and revokes
replaced keys whose overlap has ended. With <key>, it replaces these keys now.
A replaced key keeps working for its overlap: 1 day if rotateBefore is set.

The run includes the resources that depend on the keys, for example the secret of a
repository that contains a key. It changes no other resource of the program.
The credential must be a user or a workload with the role administrator.

Exit codes: 0 = done, or no key is due; 1 = error`;

const rotateCommand = (program: Command) =>
  addRunFlags(program.command("rotate"))
    .addArgument(
      new Argument("[key...]", "Name of an ApiKey resource, or of its key (default: all keys that are due)"),
    )
    .option("--folder <folder>", FOLDER, ".")
    .option("-y, --yes", YES)
    .option("--json", JSON_RESULT);

export function addRotateCommand(program: Command, action: ActionOf): void {
  addHelp(rotateCommand(program).action(action(rotate)), {
    group: "Operate a fleet:",
    summary: "Rotate API keys of the program: the keys that are due, or the given keys now.",
    notes: NOTES,
    examples: [
      "gatehouse rotate ci --stack prod",
      "gatehouse rotate --stack prod --yes     # in a scheduled pipeline",
    ],
    page: "docs/guides/api-key-rotation.md",
  });
}

function rotate(io: Io, names: readonly string[], flags: Flags): Promise<CommandOutput> {
  return withStack(io, flags.folder, { ...flags, isWriting: true }, async (running) => {
    const { stack, service } = running;
    const { connection } = requireService(service);
    const { ownResources } = await import("../namespace/coverage.ts");
    const keys = ownResources(await requireResources(stack), connection.client.url).filter(
      ({ definition, delete: isDeleted }) => definition.rotation && !isDeleted,
    );
    const chosen = named(keys, names, stack);
    const { due, isOutdated } = await dueKeys(chosen.length > 0 ? [] : keys, connection);
    const replace = chosen.map(({ urn }) => urn);
    const target = [...replace, ...due];
    if (target.length === 0) return nothingDue(io, stack);
    return applyProgram(io, running, { target, targetDependents: true, replace, refresh: isOutdated });
  });
}

/**
 * Returns the keys with these names or URNs. @throws EngineError (`usage`) unless each name selects exactly one key
 */
function named(keys: readonly OwnResource[], names: readonly string[], { selector }: Stack): OwnResource[] {
  const selected = names.map((name) => {
    const found = keys.filter(({ urn, outputs }) => [urnName(urn), urn, outputs?.name].includes(name));
    const [only, ...others] = found;
    if (only && others.length === 0) return only;
    const shown = (found.length > 0 ? found : keys).map(({ urn }) => (only ? urn : urnName(urn)));
    const problem = only
      ? `Several API keys of the stack ${selector} have the name ${name}. Give a URN`
      : `The stack ${selector} has no API key ${name}. Keys`;
    throw new EngineError("usage", printable(`${problem}: ${shown.join(", ") || "none"}.`));
  });
  return [...new Set(selected)];
}

/**
 * Returns the URNs of the keys that need a change. `isOutdated` is true if the expiry time of one of these keys differs
 * from the state.
 */
async function dueKeys(keys: readonly OwnResource[], connection: Connection) {
  const { isUnreadable } = await import("../service/listings.ts");
  const due: string[] = [];
  let isOutdated = false;
  for (const { urn, definition, id = "", inputs = {}, outputs = {} } of keys) {
    const live = await definition.read(connection, id, outputs).catch((error: unknown) => {
      // Reading a key in a different namespace may need a different credential. If the key cannot be read, the state is
      // used instead.
      if (isUnreadable(error)) return { state: outputs };
      throw error;
    });
    // For a key that was revoked while its replaced key still works, `read` returns the current time as the expiry
    // time.
    if (live !== undefined && !definition.stale?.(live.state, inputs, new Date()).length) continue;
    isOutdated ||= live?.state.expiresAt !== outputs.expiresAt;
    due.push(urn);
  }
  return { due, isOutdated };
}

function nothingDue(io: Io, { engine, project, stack }: Stack): CommandOutput {
  const result: Result = {
    engine,
    command: "up",
    project,
    stack,
    ok: true,
    planned: false,
    createdStack: false,
    steps: [],
    summary: summarize([]),
    outputs: {},
    durationMs: 0,
    diagnostics: [{ severity: "info", message: "No API key is due." }],
  };
  return { ...runOutput(io, result), text: () => "No API key is due. Nothing was changed." };
}
