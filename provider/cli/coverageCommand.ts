import type { Command } from "commander";
import { EngineError } from "../engine/index.ts";
import type { NamespaceCoverage, OwnResource, UnmanagedObject } from "../estate/coverage.ts";
import { printable } from "../words.ts";
import { addStackFlags, type StackFlags } from "./flags.ts";
import { type ActionOf, BLOCKED, type Io, type Outcome } from "./outcome.ts";
import { colors } from "./render.ts";
import {
  addWithStackFlag,
  openOnService,
  otherResources,
  readerOptions,
  requireService,
  resourcesOf,
  type WithStackFlags,
  withReleaseNote,
} from "./service.ts";

interface Flags extends StackFlags, WithStackFlags {
  readonly failOnUnmanaged: boolean;
}

export function addCoverageCommand(program: Command, action: ActionOf): void {
  addWithStackFlag(addStackFlags(program.command("coverage")))
    .description("say how much of the live namespace is declared: what no stack manages, by kind and name")
    .option(
      "--fail-on-unmanaged",
      "exit with 2 where something is unmanaged that access.ignore does not except, or could not be read",
      false,
    )
    .option("--json", "print it as JSON", false)
    .action(action(coverage));
}

async function coverage(io: Io, folder: string, flags: Flags): Promise<Outcome> {
  const { stack, io: onService, ...opened } = await openOnService(io, readerOptions(io, folder, flags));
  const service = requireService(opened.service);
  const { connection, tenant } = service;
  try {
    const found = await withReleaseNote(io, connection, async () => {
      const { inventoryOf, WATCHED_KINDS } = await import("../estate/liveObjects.ts");
      const { coverageOf, ManagedObjects, readExceptions } = await import("../estate/coverage.ts");
      if (tenant === undefined) throw missingNamespace(await resourcesOf(stack, connection));
      io.stderr.write(`Namespace: ${service.text}\n`);
      const exceptions = await readExceptions(folder);
      const managed = new ManagedObjects([
        ...(await resourcesOf(stack, connection)),
        ...(await otherResources(onService, folder, flags, connection)),
      ]);
      const inventory = await inventoryOf(connection, tenant, WATCHED_KINDS);
      return coverageOf(inventory, { service: connection.client.url, tenant }, managed, exceptions);
    });
    const isUnmanaged = found.unmanaged.some(({ exception }) => exception === undefined);
    // What could not be read may hold something unmanaged.
    const isBlocked = flags.failOnUnmanaged && (isUnmanaged || found.unknown.length > 0);
    return { result: found, text: () => textOf(io, found), exitCode: isBlocked ? BLOCKED : 0 };
  } finally {
    await connection.client.close();
  }
}

/** Coverage is about one namespace, also of a program whose resources are in several. */
function missingNamespace(resources: readonly OwnResource[]): EngineError {
  const found = new Set(resources.map(({ outputs }) => String(outputs?.tenant)));
  const where = found.size === 0 ? "" : `; the stack has objects in ${[...found].sort().join(", ")}`;
  return new EngineError(
    "usage",
    `no setting decides which namespace to look at. Set GATEHOUSE_TENANT to its id${where}.`,
  );
}

async function textOf({ stdout, env }: Io, found: NamespaceCoverage): Promise<string> {
  const { sectionLines } = await import("../review/report/text.ts");
  const c = colors(stdout, env);
  const { managed, total, percent, kinds, unmanaged, unknown } = found;
  return [
    ...kinds.map((kind) => `${kind.kind.padEnd(20)} ${share(kind)}`),
    `${c.bold("all".padEnd(20))} ${share({ managed, total, percent })}`,
    ...sectionLines(c, { title: "In no stack", items: unmanaged.map((object) => printable(lineOf(object))) }),
    ...unknown.map((sentence) => c.yellow(`not known: ${printable(sentence)}`)),
  ].join("\n");
}

const share = ({ managed, total, percent }: Pick<NamespaceCoverage, "managed" | "total" | "percent">) =>
  `${String(managed).padStart(6)} of ${String(total).padStart(6)}  ${String(percent).padStart(3)} %`;

const lineOf = ({ kind, id, name, exception }: UnmanagedObject) =>
  `${kind} ${name} (${id})${exception ? `, excepted until ${exception.until}: ${exception.reason}` : ""}`;
