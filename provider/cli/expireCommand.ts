import type { Command } from "@commander-js/extra-typings";
import type { ExpireReport, ExpireSearch, FoundExpired } from "../drift/expire.ts";
import type { Stack } from "../engine/index.ts";
import type { Connection } from "../service/connection.ts";
import { counted, printable } from "../words.ts";
import { type ActionOf, BLOCKED, type CommandOutput, type Io } from "./commandOutput.ts";
import {
  addStackFlags,
  allowIncompleteOption,
  type FlagsOf,
  JSON_RESULT,
  terraformOption,
  withStackOption,
} from "./flags.ts";
import { addHelp } from "./help.ts";
import { readTerraform } from "./planFiles.ts";
import { ask, canPrompt } from "./prompt.ts";
import { colors } from "./render.ts";
import {
  otherResources,
  requireResources,
  requireService,
  withConnection,
  withReleaseNote,
} from "./service.ts";
import { withStack } from "./withStack.ts";

type Flags = FlagsOf<typeof expireCommand>;

const NOTES = `
The command removes only objects that are as the state declares them. It does
not change the state: the next refresh or up marks the resources as removed.

Exit codes: 0 = no expired object gives access; 1 = error; ${BLOCKED} = expired objects
remain, or a part could not be checked`;

const expireCommand = (program: Command) =>
  addStackFlags(program.command("expire"))
    .addOption(withStackOption())
    .option("-y, --yes", "Remove the objects without a confirmation", false)
    .addOption(allowIncompleteOption())
    .option("--json", JSON_RESULT, false)
    .addOption(terraformOption("Use the resources in this plan of Terraform or OpenTofu instead of a stack"));

export function addExpireCommand(program: Command, action: ActionOf): void {
  addHelp(expireCommand(program).action(action(expire)), {
    group: "Operate a fleet:",
    summary: "Remove expired keys, rules and members from servers that do not end access themselves.",
    notes: NOTES,
    examples: ["gatehouse expire policy --stack prod", "gatehouse expire policy --stack prod --yes"],
    page: "docs/guides/drift.md",
  });
}

async function expire(io: Io, folder: string, flags: Flags): Promise<CommandOutput> {
  if (flags.terraform !== undefined) {
    const terraform = await readTerraform(io, folder, flags.terraform);
    const run = (connection: Connection) => expireOn(io, folder, flags, terraform, connection);
    return withConnection(io, terraform.settings, run, "terraform");
  }
  return withStack(io, folder, flags, async ({ io: onService, stack, service }) => {
    const { connection } = requireService(service);
    return withReleaseNote(io, connection, async () => {
      const resources = await requireResources(stack);
      return expireOn(onService, folder, flags, { plan: stack, resources }, connection);
    });
  });
}

interface StateToExpire extends Pick<ExpireSearch, "resources" | "notEvaluated"> {
  readonly plan: Pick<Stack, "project" | "stack">;
}

async function expireOn(
  io: Io,
  folder: string,
  flags: Flags,
  { plan: { project, stack }, resources, notEvaluated }: StateToExpire,
  connection: Connection,
): Promise<CommandOutput<ExpireReport>> {
  const { findExpired, removeExpired } = await import("../drift/expire.ts");
  const { objectText } = await import("../namespace/liveObjects.ts");
  const others = await otherResources(io, folder, flags, connection);
  const search = { connection, resources, others, notEvaluated };
  let found = await findExpired(search);
  if (found.due.length > 0 && (flags.yes || (await isConfirmed(io, flags, found)))) {
    const progress = flags.json ? io.stderr : io.stdout;
    found = await removeExpired(search, found, (object) =>
      progress.write(` -  ${printable(objectText(object))} deleted\n`),
    );
  }
  const { due: _, ...lists } = found;
  const result: ExpireReport = { version: 1, project, stack, service: connection.client.url, ...lists };
  const isIncomplete = lists.notEvaluated.length > 0 && !flags.allowIncomplete;
  const isBlocked = isIncomplete || lists.objects.some(isLeft);
  return { result, text: () => expiredText(io, lists), exitCode: isBlocked ? BLOCKED : 0 };
}

const isLeft = ({ status }: ExpireReport["objects"][number]) => status !== "removed";

async function isConfirmed(io: Io, { json }: Flags, found: FoundExpired): Promise<boolean> {
  if (json || !canPrompt(io)) return false;
  io.stdout.write(`${await expiredText(io, found)}\n`);
  return ask(io, `Remove ${counted(found.due.length, "object")}?`);
}

async function expiredText(
  { stdout, env }: Io,
  { objects, notEvaluated }: Pick<ExpireReport, "objects" | "notEvaluated">,
): Promise<string> {
  const { sectionLines } = await import("../review/report/text.ts");
  const { expiredSentence } = await import("../namespace/expired.ts");
  const c = colors(stdout, env);
  const left = objects.filter(isLeft).length;
  const summary =
    left > 0
      ? `${counted(left, "expired object")} still ${left === 1 ? "gives" : "give"} access. Add --yes to remove the objects that were not changed out of band.`
      : notEvaluated.length > 0
        ? `No expired object is known to give access; ${notEvaluated.length} not evaluated.`
        : "No expired object gives access.";
  const sentences = (all: ExpireReport["objects"]) =>
    all.map((object) => printable(expiredSentence(object, object.name)));
  const sections = [
    { title: "Expired", items: sentences(objects.filter(isLeft)) },
    { title: "Removed", items: sentences(objects.filter((object) => !isLeft(object))) },
    { title: "Not evaluated", items: notEvaluated.map(printable) },
  ];
  return [
    ...sections.flatMap((section) => sectionLines(c, section)),
    left > 0 || notEvaluated.length > 0 ? c.red(summary) : c.green(summary),
  ].join("\n");
}
