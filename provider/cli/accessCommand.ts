import { extname } from "node:path";
import { type Command, Option } from "@commander-js/extra-typings";
import type { AccessEvidence } from "../access/evidence.ts";
import type { AccessInquiry } from "../access/inquiry.ts";
import { EngineError, fileError, openStack, writeDurably } from "../engine/index.ts";
import type { OwnResource } from "../namespace/coverage.ts";
import type { NamespaceState } from "../namespace/namespaceState.ts";
import type { Connection } from "../service/connection.ts";
import { printable } from "../words.ts";
import { type ActionOf, BLOCKED, type CommandOutput, type Io } from "./commandOutput.ts";
import {
  addConfigurationFlags,
  allowIncompleteOption,
  collect,
  configurationOf,
  type FlagsOf,
  FOLDER,
  terraformOption,
} from "./flags.ts";
import { addHelp } from "./help.ts";
import { namespaceTexts, resourcesOutside } from "./otherNamespaces.ts";
import { planOrConfiguration } from "./planFiles.ts";
import { configuredResources, resourcesOf, withConnection } from "./service.ts";

type Flags = FlagsOf<typeof accessCommand>;

const NOTES = `
Exit codes: 0 = OK, even if there is no access; 1 = error; ${BLOCKED} = a part could not be
checked, the access is not known, or with --explain: the login is refused`;

const accessCommand = (program: Command) =>
  addConfigurationFlags(
    program
      .command("access")
      .option(
        "--device <name|tag>",
        "Select devices by name (* matches any text, ? one character), uid or tag. Use the prefix name:, uid: or tag: to match only one kind; repeatable",
        collect,
      )
      .option(
        "--key <key>",
        "Select keys by fingerprint, the beginning of a fingerprint, or name (* matches any text, ? one character); repeatable",
        collect,
      )
      .option(
        "--user <user>",
        "Select users and service accounts by e-mail address, name or id (* matches any text, ? one character), in a namespace in identity mode; repeatable",
        collect,
      )
      .option(
        "--person <e-mail>",
        "Select the public keys that belong to this member, or the member in a namespace in identity mode",
      )
      .option(
        "--at <time>",
        "Show the access at this time, such as 2026-12-01T18:00Z. The time needs an offset from UTC, or Z (default: now)",
      )
      .option("--login <name>", "Select access with this login name; repeatable", collect)
      .option("--from <address>", "Select access from this source IP address; repeatable", collect)
      .option(
        "--explain",
        "Explain why one login to one device with one key, or by one user, is allowed or refused",
      )
      .addOption(new Option("--json", "Print the complete result as JSON").conflicts("csv"))
      .addOption(allowIncompleteOption())
      .option("--csv", "Print a CSV line for each key or user, login, group of addresses and device")
      .addOption(
        new Option(
          "--report <file>",
          "Write dated evidence for an access review to this file, in the format of its extension: .md, .csv or .json",
        ).conflicts(["explain", "json", "csv", "terraform"]),
      )
      .addOption(terraformOption("Show the access after this plan of Terraform or OpenTofu")),
  ).option("--folder <folder>", `${FOLDER}, for --stack`, ".");

export function addAccessCommand(program: Command, action: ActionOf): void {
  addHelp(accessCommand(program).action(action(access)), {
    group: "Review access:",
    summary: "Show who can reach which devices, by which key and rule or access policy.",
    notes: NOTES,
    examples: [
      "gatehouse access --device tag:prod",
      "gatehouse access --key ana --login root --from 203.0.113.7 --device web-01 --explain",
      "gatehouse access --person ana@example.com --at 2026-12-01T18:00+01:00",
      "gatehouse access --csv > access.csv",
      "gatehouse access --stack prod --folder policy --report access-2026-12.md",
    ],
    page: "docs/guides/access.md",
  });
}

async function access(io: Io, { json, csv, ...flags }: Flags): Promise<CommandOutput> {
  const { accessAnswer } = await import("../access/answer.ts");
  const { accessInquiry } = await import("../access/inquiry.ts");
  const { readNamespace } = await import("../namespace/readNamespace.ts");
  const inquiry = accessInquiry(flags, json ? "json" : csv ? "csv" : "text");
  if (flags.report !== undefined) return report(io, flags, flags.report, inquiry);
  const { terraform, configuration } = await planOrConfiguration(io, flags.folder, flags);
  const answer = async (connection: Connection) => {
    if (!terraform) {
      const live = await readNamespace(connection);
      const own = await configuredResources(io, flags.folder, flags, connection);
      return accessAnswer(await withOtherNamespaces(connection, live, own), inquiry);
    }
    const { plannedNamespace } = await import("../review/testedNamespace.ts");
    const { after, others } = await plannedNamespace(connection, terraform.plan);
    const notEvaluated = [...terraform.notEvaluated, ...after.notEvaluated];
    const omitted = await notCovered(connection, others, "plan");
    const unknown = [...terraform.notes, ...after.unknown, ...omitted];
    return accessAnswer(after.with({ notEvaluated, unknown }), inquiry);
  };
  const { refused, notEvaluated, remarks, output } = await withConnection(
    io,
    configuration,
    answer,
    terraform && "terraform",
  );
  for (const remark of remarks) io.stderr.write(`${remark}\n`);
  return { parts: output, exitCode: refused || (notEvaluated && !flags.allowIncomplete) ? BLOCKED : 0 };
}

/**
 * Returns the live state of a namespace. Its `unknown` also contains a sentence for each other namespace with resources
 * of the stack, because the command evaluates only one namespace.
 */
async function withOtherNamespaces(
  connection: Connection,
  live: NamespaceState,
  own: readonly OwnResource[],
): Promise<NamespaceState> {
  const others = await resourcesOutside(live.tenant, own);
  return live.with({ unknown: [...live.unknown, ...(await notCovered(connection, others, "stack"))] });
}

/**
 * Returns a sentence for each namespace that the command does not evaluate. The sentence contains the number of
 * resources in the namespace.
 */
async function notCovered(
  connection: Connection,
  others: ReadonlyMap<string, number>,
  owner: "stack" | "plan",
): Promise<string[]> {
  const texts = await namespaceTexts(connection, others, owner);
  return texts.map((text) => `the access in ${text}; set GATEHOUSE_TENANT to this namespace`);
}

/** Writes a report of the live access, as evidence for an audit, to a file. */
async function report(
  io: Io,
  { folder, allowIncomplete, stack: name, engine }: Omit<Flags, "json" | "csv">,
  file: string,
  inquiry: AccessInquiry,
): Promise<CommandOutput> {
  const { accessEvidence } = await import("../access/evidence.ts");
  const { EVIDENCE_FORMATS } = await import("../access/evidenceReport.ts");
  const { readExceptions } = await import("../namespace/coverage.ts");
  const { readNamespace } = await import("../namespace/readNamespace.ts");
  const render = EVIDENCE_FORMATS[extname(file).toLowerCase()];
  if (!render) {
    const extensions = Object.keys(EVIDENCE_FORMATS).join(", ");
    throw new EngineError("usage", `--report: the extension of ${file} must be one of ${extensions}.`);
  }
  const configuration = await configurationOf(io, folder, { stack: name, engine });
  const evidence = await withConnection(io, configuration, async (connection) => {
    const readAt = new Date().toISOString();
    const exceptions = await readExceptions(folder);
    const stack =
      name === undefined ? undefined : await openStack({ folder, stack: name, env: io.env, engine });
    const own = stack && (await resourcesOf(stack, connection));
    const live = await withOtherNamespaces(connection, await readNamespace(connection), own ?? []);
    const source = {
      readAt,
      service: connection.client.url,
      stack: stack ? `${stack.project}/${stack.stack}` : null,
      revision: stack ? await revisionOf(io, folder) : null,
    };
    return accessEvidence(source, { live, own, exceptions }, inquiry);
  });
  await writeDurably(file, render(evidence)).catch(fileError("output", "write", file));
  const { notEvaluated, access } = evidence;
  for (const sentence of notEvaluated) io.stderr.write(`${printable(`Not known: ${sentence}`)}\n`);
  const isIncomplete = access === null || (notEvaluated.length > 0 && !allowIncomplete);
  return { text: () => `Wrote ${file}.`, exitCode: isIncomplete ? BLOCKED : 0 };
}

/**
 * Returns the commit of the program; null if the commit cannot be determined, for example outside of a Git repository.
 */
async function revisionOf(io: Io, folder: string): Promise<AccessEvidence["revision"]> {
  const { headOf, openRepository } = await import("../revisions/repository.ts");
  try {
    return headOf(openRepository(folder, io.env));
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    const reason = printable(error.message);
    io.stderr.write(`The evidence does not contain the commit of the program: ${reason}\n`);
    return null;
  }
}
