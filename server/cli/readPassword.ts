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
 * Asks at the terminal, on stderr, without showing what is typed.
 * @throws OperatorError when the person gives up (Ctrl-C, Ctrl-D)
 */
function askHidden(stdin: ReadStream, stderr: Writable, question: string): Promise<string> {
  // Before the question is shown, so that nothing typed after it is echoed.
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
          return finish(() => reject(new OperatorError("No password given")));
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
 * A new password: generated, read from the first line of stdin, or asked for at the terminal. Never an argument, which
 * every user of the machine could read.
 * @throws OperatorError when stdin holds no password, or the two passwords typed differ
 */
export async function readPassword(io: CommandIo, flags: PasswordFlags): Promise<string> {
  if (flags.generatePassword) return randomBytes(18).toString("base64url");
  const { stdin, stderr } = io;
  if (flags.passwordStdin || !stdin.isTTY) {
    const [line = ""] = (await text(stdin)).split(/\r?\n/, 1);
    if (line !== "") return line;
    throw new OperatorError(
      "stdin holds no password: pipe one in, run the command at a terminal, or use --generate-password",
    );
  }
  const password = await askHidden(stdin, stderr, "Password: ");
  if ((await askHidden(stdin, stderr, "Again: ")) !== password)
    throw new OperatorError("The two passwords differ");
  return password;
}
