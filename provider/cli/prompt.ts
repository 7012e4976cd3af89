import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Io } from "./outcome.ts";

/** Returns true if the command can prompt the user: the standard input and output are terminals. */
export const canPrompt = ({ stdin, stdout }: Io): boolean => stdin.isTTY === true && stdout.isTTY === true;

/**
 * Prompts the user. Returns true if the answer is yes; the default is no. The end of the input is a no. Ctrl-C has the
 * effect of SIGINT, because a prompt receives Ctrl-C as input.
 */
export async function ask({ stdin, stdout }: Io, question: string): Promise<boolean> {
  const terminal = createInterface({ input: stdin, output: stdout });
  terminal.on("SIGINT", () => {
    stdout.write("\n");
    terminal.close();
    if (!process.emit("SIGINT")) process.exit(130);
  });
  terminal.setPrompt(`${question} [y/N] `);
  terminal.prompt();
  const [answer = ""]: string[] = await Promise.race([once(terminal, "line"), once(terminal, "close")]);
  terminal.close();
  return /^y(es)?$/i.test(answer.trim());
}
