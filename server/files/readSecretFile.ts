import { readFileSync } from "node:fs";
import { OperatorError } from "../OperatorError.ts";

/**
 * A secret that a file holds, without the line break at its end.
 * @throws OperatorError when it cannot be read or holds nothing
 */
export function readSecretFile(file: string): string {
  let text: string;
  try {
    text = readFileSync(file, "utf8").replace(/\r?\n$/, "");
  } catch (error) {
    throw new OperatorError(`cannot read ${file}: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (text === "") throw new OperatorError(`${file} is empty`);
  return text;
}
