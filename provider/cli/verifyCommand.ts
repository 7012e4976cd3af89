import type { Command } from "@commander-js/extra-typings";
import { queryTime } from "../access/queryTime.ts";
import { EngineError } from "../engine/index.ts";
import type { OwnResource } from "../namespace/coverage.ts";
import type { Connection } from "../service/connection.ts";
import type { ComparedSessions, LoginDifference, Verification } from "../verify/verification.ts";
import { counted, instantText, printable } from "../words.ts";
import { type ActionOf, BLOCKED, type CommandOutput, type Io } from "./commandOutput.ts";
import {
  addConfigurationFlags,
  allowIncompleteOption,
  type FlagsOf,
  FOLDER,
  JSON_RESULT,
  positive,
  terraformOption,
} from "./flags.ts";
import { addHelp } from "./help.ts";
import { namespaceTexts, resourcesOutside, terraformResources } from "./otherNamespaces.ts";
import { planOrConfiguration } from "./planFiles.ts";
import { colors } from "./render.ts";
import { configuredResources, withConnection } from "./service.ts";

type Flags = FlagsOf<typeof verifyCommand>;

/** Default of `--max-sessions`. */
const SESSIONS_MAX = 10_000;

const NOTES = `
The command compares each session since the last change of the policy with the
live policy. It needs a credential that may read the audit trail (role
administrator), or --since. It changes nothing.

Exit codes: 0 = the policy allows all compared logins; 1 = error; ${BLOCKED} = the service
admitted a login that the policy refuses, or a session or a namespace of the
stack could not be compared`;

const verifyCommand = (program: Command) =>
  addConfigurationFlags(program.command("verify").argument("[folder]", FOLDER, "."))
    .option(
      "--since <time>",
      "Compare only sessions since this time, such as 2026-12-01T18:00Z. Required if the server has no audit trail (default: the last change of the policy)",
    )
    .option(
      "--max-sessions <n>",
      "Maximum number of sessions to compare, latest first",
      positive("--max-sessions"),
      SESSIONS_MAX,
    )
    .addOption(allowIncompleteOption())
    .option("--json", JSON_RESULT, false)
    .addOption(terraformOption("Read missing settings from this plan of Terraform or OpenTofu"));

export function addVerifyCommand(program: Command, action: ActionOf): void {
  addHelp(verifyCommand(program).action(action(verify)), {
    group: "Operate a fleet:",
    summary: "Compare the logins that the service admitted with the policy.",
    notes: NOTES,
    examples: ["gatehouse verify policy --stack prod", "gatehouse verify --since 2026-12-01T18:00Z --json"],
    page: "docs/guides/drift.md",
  });
}

async function verify(io: Io, folder: string, flags: Flags): Promise<CommandOutput<Verification>> {
  const since = flags.since === undefined ? undefined : queryTime(flags.since, refuseTime);
  const { terraform, configuration } = await planOrConfiguration(io, folder, flags);
  const { verifyNamespace } = await import("../verify/verifyNamespace.ts");
  const result = await withConnection(
    io,
    configuration,
    async (connection) => {
      const verification = await verifyNamespace(connection, { since, maxSessions: flags.maxSessions });
      const own = () =>
        terraform
          ? terraformResources(terraform, connection.client.url)
          : configuredResources(io, folder, flags, connection);
      const omitted = await notCompared(
        connection,
        verification.namespace,
        own,
        terraform ? "plan" : "stack",
      );
      return { ...verification, notEvaluated: [...omitted, ...verification.notEvaluated] };
    },
    terraform && "terraform",
  );
  const isIncomplete = result.notEvaluated.length > 0 && !flags.allowIncomplete;
  const isBlocked = result.differences.length > 0 || isIncomplete;
  return { result, text: () => verificationText(io, result), exitCode: isBlocked ? BLOCKED : 0 };
}

/**
 * Returns a sentence for each namespace that contains resources of the stack but is not compared.
 * @param compared id of the compared namespace
 * @param own returns the resources of the stack
 */
async function notCompared(
  connection: Connection,
  compared: string,
  own: () => Promise<readonly OwnResource[]>,
  owner: "stack" | "plan",
): Promise<string[]> {
  let resources: readonly OwnResource[];
  try {
    resources = await own();
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    return [
      `other namespaces were not compared, because the resources of the ${owner} could not be read: ${error.message}`,
    ];
  }
  const others = await resourcesOutside(compared, resources);
  const texts = await namespaceTexts(connection, others, owner);
  return texts.map((text) => `${text}, was not compared; set GATEHOUSE_TENANT to compare it`);
}

const refuseTime = (detail: string) => new EngineError("usage", detail, { field: ["--since"] });

async function verificationText({ stdout, env }: Io, verification: Verification): Promise<string> {
  const { sectionLines } = await import("../review/report/text.ts");
  const c = colors(stdout, env);
  const { name, service, since, compared, unauthenticated, differences, notEvaluated, notes } = verification;
  const sections = [
    {
      title: `Admitted, but refused by the policy: ${differences.length}`,
      items: differences.map(differenceSentence),
    },
    { title: `Not evaluated: ${notEvaluated.length}`, items: notEvaluated },
  ];
  const lines = [
    `Namespace ${name} on ${service}: ${counted(compared.total, "login")} since ${instantText(since)}${basisText(compared)}`,
    ...(unauthenticated > 0
      ? [`${counted(unauthenticated, "session")} not compared, because the login did not succeed`]
      : []),
    ...notes,
  ];
  const summary = summaryText(verification);
  const isFine = differences.length === 0 && notEvaluated.length === 0;
  return [
    ...lines.map(printable),
    ...sections.flatMap(({ title, items }) => sectionLines(c, { title, items: items.map(printable) })),
    ...(differences.length > 0 ? [remedyText(verification)] : []),
    isFine ? c.green(summary) : c.red(summary),
  ].join("\n");
}

/**
 * Returns the end of a sentence: the numbers of logins that were compared with incomplete data. Returns an empty string
 * if there are no such logins.
 */
function basisText({ byFirewall, weakly }: ComparedSessions): string {
  const parts = [
    ...(byFirewall > 0 ? [`${byFirewall} without a key, which the firewall alone decides`] : []),
    ...(weakly > 0 ? [`${weakly} weakly, because the server stores neither the key nor the user`] : []),
  ];
  return parts.length === 0 ? "" : ` (${parts.join("; ")})`;
}

function differenceSentence(difference: LoginDifference): string {
  const { session, startedAt, login, address, device, key, user, reason } = difference;
  const by = key
    ? ` with the key ${named(key.name, key.fingerprint)}`
    : user
      ? ` by ${named(user.name, user.id)}`
      : "";
  return `${login} on ${device.name} from ${address}${by}, ${instantText(startedAt)}, session ${session}: ${reason}`;
}

const named = (name: string | null, id: string) => (name ? `${name} (${id})` : id);

const remedyText = ({ lastChange }: Verification): string =>
  lastChange
    ? "Close these sessions if they are open, check the logins with gatehouse access --explain --at <time>, and report the differences to the operator of the service."
    : "Check the logins with gatehouse access --explain --at <time>. If the policy changed after these logins, set --since to a time after the change.";

function summaryText({ compared: { total }, differences, notEvaluated }: Verification): string {
  const open = notEvaluated.length > 0 ? `; ${notEvaluated.length} not evaluated` : "";
  if (differences.length > 0)
    return `The policy refuses ${differences.length} of ${counted(total, "login")} that the service admitted${open}.`;
  return total === 0
    ? `No login was compared${open}.`
    : `The policy allows ${total === 1 ? "the login" : `all ${total} logins`} that the service admitted${open}.`;
}
