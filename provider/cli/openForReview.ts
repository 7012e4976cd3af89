import { openStack, type Stack, type StackOptions } from "../engine/index.ts";
import { type StackFlags, stackOptionsOf } from "./flags.ts";
import type { Io } from "./io.ts";
import { openOnService } from "./openOnService.ts";
import { colours, progressLine } from "./render.ts";

/**
 * Opens a stack for a review, and settles its namespace. Messages of the engine, and where the stack's objects are, go to
 * the standard error, beside the review.
 * @returns the stack, and the environment for all that follows, which names the namespace
 */
export async function openForReview(
  io: Io,
  folder: string,
  flags: StackFlags,
): Promise<{ stack: Stack; io: Io }> {
  const { service, ...opened } = await openOnService(io, readerOptions(io, folder, flags));
  if (service) {
    io.stderr.write(`Namespace: ${service.text}\n`);
    await service.connection.client.close();
  }
  return opened;
}

/** Opens a stack of another revision of a program, whose service and namespace are settled already. */
export function openRevision(io: Io, folder: string, flags: StackFlags): Promise<Stack> {
  return openStack({ ...readerOptions(io, folder, flags), env: io.env });
}

/** The options of commands that read: messages of the engine go to the standard error, beside what they print. */
export function readerOptions({ stderr, env }: Io, folder: string, flags: StackFlags): StackOptions {
  const c = colours(stderr, env);
  return {
    ...stackOptionsOf(folder, flags),
    onEvent: (event) => {
      const line = event.kind === "diagnostic" || event.kind === "phase" ? progressLine(c, event) : undefined;
      if (line !== undefined) stderr.write(`${line}\n`);
    },
  };
}
