import type { Command } from "@commander-js/extra-typings";
import { EngineError } from "../engine/index.ts";
import type { NamespaceCoverage, OwnResource, UnmanagedObject } from "../namespace/coverage.ts";
import { printable } from "../words.ts";
import { type ActionOf, BLOCKED, type CommandOutput, type Io } from "./commandOutput.ts";
import { addStackFlags, type FlagsOf, JSON_RESULT, withStackOption } from "./flags.ts";
import { addHelp } from "./help.ts";
import { colors } from "./render.ts";
import {
  openOnService,
  otherResources,
  readerOptions,
  requireService,
  resourcesOf,
  withReleaseNote,
} from "./service.ts";

type Flags = FlagsOf<typeof coverageCommand>;

const coverageCommand = (program: Command) =>
  addStackFlags(program.command("coverage"))
    .addOption(withStackOption())
    .option(
      "--fail-on-unmanaged",
      "Exit with code 2 if an unmanaged object has no exception in access.ignore, or if a list could not be read",
      false,
    )
    .option("--json", JSON_RESULT, false);

export function addCoverageCommand(program: Command, action: ActionOf): void {
  addHelp(coverageCommand(program).action(action(coverage)), {
    group: "Review access:",
    summary: "Show how much of the live namespace is managed, and list unmanaged objects.",
    examples: [
      "gatehouse coverage policy --stack prod",
      "gatehouse coverage policy --stack prod --with-stack ../other:prod --fail-on-unmanaged",
    ],
    page: "docs/guides/drift.md",
  });
}

async function coverage(io: Io, folder: string, flags: Flags): Promise<CommandOutput> {
  const { stack, io: onService, ...opened } = await openOnService(io, readerOptions(io, folder, flags));
  const service = requireService(opened.service);
  const { connection, tenant } = service;
  try {
    const result = await withReleaseNote(io, connection, async () => {
      const { watchedIn } = await import("../namespace/liveObjects.ts");
      const { readNamespace } = await import("../namespace/readNamespace.ts");
      const { coverageOf, ManagedObjects, readExceptions } = await import("../namespace/coverage.ts");
      if (tenant === undefined) throw missingNamespace(await resourcesOf(stack, connection));
      io.stderr.write(`Namespace: ${service.text}\n`);
      // If the credential may not read the namespace, the list requests below fail with a permission error. If the
      // namespace does not exist, the lists are empty, and the coverage would be 100 %. So a missing namespace is an
      // error.
      const { PermissionError } = await import("@gatehouse-access/sdk");
      const namespace = await connection.namespaces.find(tenant).catch((error: unknown) => {
        if (error instanceof PermissionError) return null;
        throw error;
      });
      if (namespace === undefined) {
        throw new EngineError(
          "usage",
          `The namespace ${tenant} does not exist on ${connection.client.url}. Set GATEHOUSE_TENANT to the id of an existing namespace.`,
        );
      }
      const exceptions = await readExceptions(folder);
      const managed = new ManagedObjects([
        ...(await resourcesOf(stack, connection)),
        ...(await otherResources(onService, folder, flags, connection)),
      ]);
      const live = await readNamespace(connection, tenant, { evaluatesAccess: false });
      const inventory = watchedIn(live);
      const unknown = [...live.notEvaluated, ...inventory.unknown];
      return coverageOf(
        { ...inventory, unknown },
        { service: connection.client.url, tenant },
        managed,
        exceptions,
      );
    });
    const isUnmanaged = result.unmanaged.some(({ exception }) => exception === undefined);
    // Lists that could not be read may contain unmanaged objects.
    const isBlocked = flags.failOnUnmanaged && (isUnmanaged || result.unknown.length > 0);
    return { result, text: () => coverageText(io, result), exitCode: isBlocked ? BLOCKED : 0 };
  } finally {
    await connection.client.close();
  }
}

/**
 * Returns the error for a stack whose namespace is not set. The command computes the coverage of exactly one namespace.
 */
function missingNamespace(resources: readonly OwnResource[]): EngineError {
  const tenants = new Set(resources.map(({ outputs }) => String(outputs?.tenant)));
  const where = tenants.size === 0 ? "" : ` (the stack has objects in ${[...tenants].sort().join(", ")})`;
  return new EngineError(
    "usage",
    `The namespace is not set. Set GATEHOUSE_TENANT to the id of the namespace${where}.`,
  );
}

async function coverageText({ stdout, env }: Io, coverage: NamespaceCoverage): Promise<string> {
  const { sectionLines } = await import("../review/report/text.ts");
  const { expiredSentence } = await import("../namespace/expired.ts");
  const c = colors(stdout, env);
  const { managed, total, percent, kinds, unmanaged, expired, unknown } = coverage;
  return [
    ...kinds.map((kind) => `${kind.kind.padEnd(20)} ${share(kind)}`),
    `${c.bold("all".padEnd(20))} ${share({ managed, total, percent })}`,
    ...sectionLines(c, { title: "Unmanaged", items: unmanaged.map((object) => printable(lineOf(object))) }),
    ...sectionLines(c, {
      title: "Expired",
      items: expired.map((object) => printable(expiredSentence(object, object.name))),
    }),
    ...unknown.map((sentence) => c.yellow(`unknown: ${printable(sentence)}`)),
  ].join("\n");
}

const share = ({ managed, total, percent }: Pick<NamespaceCoverage, "managed" | "total" | "percent">) =>
  `${String(managed).padStart(6)} of ${String(total).padStart(6)}  ${percent === null ? "not known" : `${String(percent).padStart(3)} %`}`;

const lineOf = ({ kind, id, name, exception }: UnmanagedObject) =>
  `${kind} ${name} (${id})${exception ? `, excepted until ${exception.until}: ${exception.reason}` : ""}`;
