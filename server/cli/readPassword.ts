import { randomBytes } from "node:crypto";
import { text } from "node:stream/consumers";
import { OperatorError } from "../OperatorError.ts";
import { askHidden } from "./askHidden.ts";
import type { CommandIo } from "./CommandIo.ts";

export interface PasswordFlags {
  readonly passwordStdin?: boolean;
  readonly generatePassword?: boolean;
}

/**
 * A new password: generated, or the first line of stdin, or asked for at the terminal. Never an argument, which
 * every user of the machine could read.
 * @throws OperatorError when stdin holds none, or the two answers differ
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
