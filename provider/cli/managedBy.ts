import type { Command } from "commander";
import { type EngineName, openStack, type Stack } from "../engine/index.ts";
import type { OwnResource } from "../estate/coverage.ts";
import type { Connection } from "../service/connection.ts";
import { collect } from "./flags.ts";
import type { Io } from "./io.ts";

/** The flags that name more stacks whose objects count as managed, as commander gives them. */
export interface WithStackFlags {
  readonly withStack?: readonly string[];
  readonly engine?: EngineName;
}

/** Adds the flag of {@link WithStackFlags}. */
export function addWithStackFlag(command: Command): Command {
  return command.option(
    "--with-stack <stack>",
    "what this stack manages is managed too: a stack of the project, or folder:stack of another one; may be repeated",
    collect,
  );
}

/** The resources of this package in a stack's state that are on a service. */
export async function resourcesOf(stack: Stack, { client }: Connection): Promise<OwnResource[]> {
  // Loaded here, since most commands need no definition.
  const { ownResources } = await import("../estate/coverage.ts");
  return ownResources(await stack.resources(), client.url);
}

/** The same of all stacks that `--with-stack` names. @throws EngineError where one cannot be opened or read */
export async function otherResources(
  { env, stderr }: Io,
  folder: string,
  { withStack = [], engine }: WithStackFlags,
  connection: Connection,
): Promise<OwnResource[]> {
  const found: OwnResource[] = [];
  for (const named of withStack) {
    const [, otherFolder = folder, name = named] = /^(.+):([^:]+)$/.exec(named) ?? [];
    const other = await openStack({ folder: otherFolder, stack: name, env, ...(engine && { engine }) });
    const resources = await resourcesOf(other, connection);
    if (resources.length === 0) stderr.write(`--with-stack ${named}: it is not there, or has no resources\n`);
    found.push(...resources);
  }
  return found;
}
