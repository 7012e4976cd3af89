import type { Command } from "commander";
import { EngineError } from "../engine/index.ts";
import type { NamespaceCoverage, OwnResource, UnmanagedObject } from "../estate/coverage.ts";
import { addStackFlags, type StackFlags } from "./flags.ts";
import type { ActionOf, Io } from "./io.ts";
import { addWithStackFlag, otherResources, resourcesOf, type WithStackFlags } from "./managedBy.ts";
import { readerOptions } from "./openForReview.ts";
import { openOnService, requireService } from "./openOnService.ts";
import { colours } from "./render.ts";
import { tellingOf } from "./withConnection.ts";

/** The exit code of `gatehouse coverage --fail-on-unmanaged` where something is unmanaged. */
export const UNMANAGED = 2;

interface Flags extends StackFlags, WithStackFlags {
  readonly failOnUnmanaged: boolean;
  readonly json: boolean;
}

/** Adds coverage, which says what of the live namespace no stack manages. */
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

async function coverage(io: Io, folder: string, flags: Flags): Promise<number> {
  const { stack, io: onService, ...opened } = await openOnService(io, readerOptions(io, folder, flags));
  const service = requireService(opened.service);
  try {
    const found = await tellingOf(io.stderr, service.connection, async () => {
      const { inventoryOf, WATCHED_KINDS } = await import("../estate/liveObjects.ts");
      const { coverageOf, ManagedObjects } = await import("../estate/coverage.ts");
      const { readExceptions } = await import("../estate/exceptions.ts");
      const { connection } = service;
      const { url } = connection.client;
      const { tenant } = service;
      if (tenant === undefined) throw unsettled(await resourcesOf(stack, connection));
      io.stderr.write(`Namespace: ${service.text}\n`);
      const exceptions = await readExceptions(folder);
      const managed = new ManagedObjects([
        ...(await resourcesOf(stack, connection)),
        ...(await otherResources(onService, folder, flags, connection)),
      ]);
      const inventory = await inventoryOf(connection, tenant, WATCHED_KINDS);
      return coverageOf(inventory, { service: url, tenant }, managed, exceptions);
    });
    io.stdout.write(`${flags.json ? JSON.stringify(found, null, 2) : await textOf(io, found)}\n`);
    const isOpen = found.unmanaged.some(({ exception }) => exception === undefined);
    // What could not be read may hold something unmanaged.
    return flags.failOnUnmanaged && (isOpen || found.unknown.length > 0) ? UNMANAGED : 0;
  } finally {
    await service.connection.client.close();
  }
}

/** Coverage is about one namespace, also of a program whose resources are in several. */
function unsettled(resources: readonly OwnResource[]): EngineError {
  const found = new Set(resources.map(({ outputs }) => String(outputs?.tenant)));
  const where = found.size === 0 ? "" : `; the stack has objects in ${[...found].sort().join(", ")}`;
  return new EngineError(
    "usage",
    `no setting decides which namespace to look at. Set GATEHOUSE_TENANT to its id${where}.`,
  );
}

/** Most objects that a terminal is shown. */
const SHOWN_MAX = 50;

async function textOf({ stdout, env }: Io, found: NamespaceCoverage): Promise<string> {
  const { printable } = await import("../words.ts");
  const c = colours(stdout, env);
  const { managed, total, percent, kinds, unmanaged, unknown } = found;
  const more = unmanaged.length - SHOWN_MAX;
  return [
    ...kinds.map((kind) => `${kind.kind.padEnd(20)} ${share(kind)}`),
    `${c.bold("all".padEnd(20))} ${share({ managed, total, percent })}`,
    ...(unmanaged.length > 0 ? [c.bold("In no stack")] : []),
    ...unmanaged.slice(0, SHOWN_MAX).map((object) => `  ${printable(lineOf(object))}`),
    ...(more > 0 ? [c.dim(`  … and ${more} more (--json has all)`)] : []),
    ...unknown.map((sentence) => c.yellow(`not known: ${printable(sentence)}`)),
  ].join("\n");
}

const share = ({ managed, total, percent }: Pick<NamespaceCoverage, "managed" | "total" | "percent">) =>
  `${String(managed).padStart(6)} of ${String(total).padStart(6)}  ${String(percent).padStart(3)} %`;

const lineOf = ({ kind, id, name, exception }: UnmanagedObject) =>
  `${kind} ${name} (${id})${exception ? `, excepted until ${exception.until}: ${exception.reason}` : ""}`;
