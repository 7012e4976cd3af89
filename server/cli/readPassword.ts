import { randomBytes } from "node:crypto";
import type { Writable } from "node:stream";
import { text } from "node:stream/consumers";
import type { ReadStream } from "node:tty";
import { OperatorError } from "../OperatorError.ts";
import type { CommandIo } from "./CommandIo.ts";

const ENTER = ["\r", "\n"];
const END_OF_INPUT = "\u0004";
const INTERRUPT = "\u0003";
const ERASE = ["\u007f", "\b"];

/**
 * Prompts for a password at the terminal. Writes the prompt to stderr, and does not show the typed characters.
 * @throws OperatorError if the user cancels (Ctrl-C, Ctrl-D)
 */
function promptHidden(stdin: ReadStream, stderr: Writable, question: string): Promise<string> {
  // Disable echo before the prompt appears, so that the terminal never shows a typed character.
  stdin.setRawMode(true);
  stderr.write(question);
  stdin.setEncoding("utf8");
  stdin.resume();
  return new Promise((resolve, reject) => {
    let typed = "";
    const finish = (end: () => void) => {
      stdin.off("data", onData);
      stdin.setRawMode(false);
      stdin.pause();
      stderr.write("\n");
      end();
    };
    const onData = (chunk: string) => {
      for (const character of chunk) {
        if (ENTER.includes(character)) return finish(() => resolve(typed));
        if (character === INTERRUPT || character === END_OF_INPUT) {
          return finish(() => reject(new OperatorError("No password was entered.")));
        }
        typed = ERASE.includes(character) ? [...typed].slice(0, -1).join("") : typed + character;
      }
    };
    stdin.on("data", onData);
  });
}

export interface PasswordFlags {
  readonly passwordStdin?: boolean;
  readonly generatePassword?: boolean;
}

/**
 * Returns a new password. The password is generated, read from the first line of stdin, or entered at the terminal. It
 * is never an argument, because every user of the machine can read the arguments of a process.
 * @throws OperatorError if stdin has no password, or the two entered passwords differ
 */
export async function readPassword(io: CommandIo, flags: PasswordFlags): Promise<string> {
  if (flags.generatePassword) return randomBytes(18).toString("base64url");
  const { stdin, stderr } = io;
  if (flags.passwordStdin || !stdin.isTTY) {
    const [line = ""] = (await text(stdin)).split(/\r?\n/, 1);
    if (line !== "") return line;
    throw new OperatorError(
      "The standard input has no password. Pipe a password to the command, run the command at a terminal, or use --generate-password.",
    );
  }
  const password = await promptHidden(stdin, stderr, "Password: ");
  if ((await promptHidden(stdin, stderr, "Repeat the password: ")) !== password)
    throw new OperatorError("The passwords do not match. Run the command again.");
  return password;
}
