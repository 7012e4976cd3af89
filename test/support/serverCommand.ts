import { main } from "../../server/main.ts";
import { type CommandOptions, type CommandResult, callCommand, environmentWithout } from "./command.ts";

/** Prefix of `gatehouse-server`'s environment variables. */
export const SETTINGS = "GATEHOUSE_";

/**
 * Runs `gatehouse-server` in this process to its end, which takes a hundredth of the time of a separate process. For
 * commands that end by themselves, and for `serve` if it fails before it logs.
 */
export async function callServerCommand(
  args: readonly string[],
  { env = {}, ...options }: Pick<CommandOptions, "env" | "stdin"> = {},
): Promise<CommandResult> {
  // `serve` changes the umask of its process.
  const umask = process.umask();
  try {
    return await callCommand(main, args, { ...options, env: { ...environmentWithout(SETTINGS), ...env } });
  } finally {
    process.umask(umask);
  }
}
