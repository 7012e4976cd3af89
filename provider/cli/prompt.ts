import { createInterface } from "node:readline/promises";
import type { Io } from "./outcome.ts";

/** Returns true if the command can prompt the user: the standard input and output are terminals. */
export const canPrompt = ({ stdin, stdout }: Io): boolean => stdin.isTTY === true && stdout.isTTY === true;

/** Prompts the user. Returns true if the answer is yes; the default is no. */
export async function ask({ stdin, stdout }: Io, question: string): Promise<boolean> {
  const terminal = createInterface({ input: stdin, output: stdout });
  try {
    return /^y(es)?$/i.test((await terminal.question(`${question} [y/N] `)).trim());
  } finally {
    terminal.close();
  }
}
