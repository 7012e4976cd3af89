import { openStack, type Stack } from "../engine/index.ts";
import { type StackFlags, stackOptionsOf } from "./flags.ts";
import { colours, progressLine } from "./render.ts";

/** Opens a stack for a review: what the engine says on its way goes beside the review. */
export function openForReview(
  folder: string,
  flags: StackFlags,
  env: NodeJS.ProcessEnv = process.env,
): Promise<Stack> {
  const c = colours(process.stderr, process.env);
  return openStack({
    ...stackOptionsOf(folder, flags),
    env,
    onEvent: (event) => {
      const line = event.kind === "diagnostic" || event.kind === "phase" ? progressLine(c, event) : undefined;
      if (line !== undefined) process.stderr.write(`${line}\n`);
    },
  });
}
