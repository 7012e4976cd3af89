import { once } from "node:events";
import { createInterface, type Interface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import type { Io } from "./commandOutput.ts";

/** Returns true if the command can prompt the user: the standard input and output are terminals. */
export const canPrompt = ({ stdin, stdout }: Io): boolean => stdin.isTTY === true && stdout.isTTY === true;

/**
 * The duration for which a prompt discards earlier input, in milliseconds. Some systems deliver pending input with a
 * delay.
 */
const DISCARD_TIME = 50;

/**
 * Prompts the user. Returns true if the answer is yes. The default is no, and the end of the input is treated as no.
 * Discards input from before the prompt, so that only an answer to this question is used. A prompt receives Ctrl-C as
 * input instead of SIGINT, so the function handles Ctrl-C like SIGINT.
 */
export async function ask(io: Io, question: string): Promise<boolean> {
  const { stdin, stdout } = io;
  // An interface without an output stream does not echo the input.
  const discarding = endedByCtrlC(io, createInterface({ input: stdin, terminal: true }));
  await delay(DISCARD_TIME);
  discarding.close();
  const terminal = endedByCtrlC(io, createInterface({ input: stdin, output: stdout }));
  terminal.setPrompt(`${question} [y/N] `);
  terminal.prompt();
  const [answer = ""]: string[] = await Promise.race([once(terminal, "line"), once(terminal, "close")]);
  terminal.close();
  return /^y(es)?$/i.test(answer.trim());
}

const endedByCtrlC = ({ stdout }: Io, terminal: Interface): Interface =>
  terminal.on("SIGINT", () => {
    stdout.write("\n");
    terminal.close();
    if (!process.emit("SIGINT")) process.exit(130);
  });
