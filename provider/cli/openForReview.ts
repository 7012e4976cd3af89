import { openStack, type Stack, type StackOptions } from "../engine/index.ts";
import { type StackFlags, stackOptionsOf } from "./flags.ts";
import { openOnService } from "./openOnService.ts";
import { colours, progressLine } from "./render.ts";

/** Opens a stack for a review: what the engine says on its way goes beside the review, as does where its objects are. */
export async function openForReview(folder: string, flags: StackFlags): Promise<Stack> {
  const { stack, service } = await openOnService(reviewOptions(folder, flags));
  if (service) {
    process.stderr.write(`Namespace: ${service.text}\n`);
    await service.connection.client.close();
  }
  return stack;
}

/** Opens another revision of a program whose service and namespace are settled. */
export function openRevision(folder: string, flags: StackFlags, env: NodeJS.ProcessEnv): Promise<Stack> {
  return openStack({ ...reviewOptions(folder, flags), env });
}

function reviewOptions(folder: string, flags: StackFlags): StackOptions {
  const c = colours(process.stderr, process.env);
  return {
    ...stackOptionsOf(folder, flags),
    onEvent: (event) => {
      const line = event.kind === "diagnostic" || event.kind === "phase" ? progressLine(c, event) : undefined;
      if (line !== undefined) process.stderr.write(`${line}\n`);
    },
  };
}
