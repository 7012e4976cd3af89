import { main } from "../../server/main.ts";
import { type CommandOptions, type CommandResult, callCommand, environmentWithout } from "./command.ts";

/** The settings of `gatehouse-server` in an environment. */
export const SETTINGS = "GATEHOUSE_";

/**
 * Runs `gatehouse-server` with the given arguments to its end in this process, which takes a hundredth of the time that
 * a process of its own takes. For commands that end by themselves, and for `serve` where it is refused before it logs.
 */
export async function callServerCommand(
  args: readonly string[],
  { env = {}, ...options }: Pick<CommandOptions, "env" | "stdin"> = {},
): Promise<CommandResult> {
  // `serve` takes another one for its process.
  const umask = process.umask();
  try {
    return await callCommand(main, args, { ...options, env: { ...environmentWithout(SETTINGS), ...env } });
  } finally {
    process.umask(umask);
  }
}
