import { main } from "../../server/main.ts";
import { type CommandOptions, type CommandResult, callCommand, environmentWithout } from "./command.ts";

/** Prefix of the environment variables that `gatehouse-server` reads. */
export const SETTINGS = "GATEHOUSE_";

/**
 * Runs `gatehouse-server` to its end in this process, which takes a hundredth of the time of a separate process. It is
 * only for commands that end by themselves, and for `serve` if it fails before its first log line.
 */
export async function callServerCommand(
  args: readonly string[],
  { env = {}, ...options }: Pick<CommandOptions, "env" | "stdin"> = {},
): Promise<CommandResult> {
  // Restores the umask of this process, which `serve` changes.
  const umask = process.umask();
  try {
    return await callCommand(main, args, { ...options, env: { ...environmentWithout(SETTINGS), ...env } });
  } finally {
    process.umask(umask);
  }
}
