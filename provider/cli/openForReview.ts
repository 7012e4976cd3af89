import { openStack, type Stack, type StackOptions } from "../engine/index.ts";
import { type StackFlags, stackOptionsOf } from "./flags.ts";
import type { Io } from "./io.ts";
import { openOnService } from "./openOnService.ts";
import { colours, progressLine } from "./render.ts";

/**
 * Opens a stack for a review: what the engine says on its way goes beside the review, as does where its objects are.
 * @returns also what all that follows is to be done with, since it has the namespace that is settled
 */
export async function openForReview(
  io: Io,
  folder: string,
  flags: StackFlags,
): Promise<{ stack: Stack; io: Io }> {
  const { service, ...opened } = await openOnService(io, reviewOptions(io, folder, flags));
  if (service) {
    io.stderr.write(`Namespace: ${service.text}\n`);
    await service.connection.client.close();
  }
  return opened;
}

/** Opens another revision of a program whose service and namespace are settled. */
export function openRevision(io: Io, folder: string, flags: StackFlags): Promise<Stack> {
  return openStack({ ...reviewOptions(io, folder, flags), env: io.env });
}

function reviewOptions({ stderr, env }: Io, folder: string, flags: StackFlags): StackOptions {
  const c = colours(stderr, env);
  return {
    ...stackOptionsOf(folder, flags),
    onEvent: (event) => {
      const line = event.kind === "diagnostic" || event.kind === "phase" ? progressLine(c, event) : undefined;
      if (line !== undefined) stderr.write(`${line}\n`);
    },
  };
}
