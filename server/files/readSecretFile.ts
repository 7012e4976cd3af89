import { readFileSync } from "node:fs";
import { OperatorError, reasonOf } from "../OperatorError.ts";

/**
 * Returns the secret in a file, without the line break at its end.
 * @throws OperatorError the file cannot be read or is empty
 */
export function readSecretFile(file: string): string {
  let text: string;
  try {
    text = readFileSync(file, "utf8").replace(/\r?\n$/, "");
  } catch (error) {
    throw new OperatorError(`cannot read ${file}: ${reasonOf(error)}`);
  }
  if (text === "") throw new OperatorError(`${file} is empty`);
  return text;
}
