import { readFileSync } from "node:fs";
import { fileFailureText } from "@gatehouse-access/sdk/errors";
import { OperatorError } from "../OperatorError.ts";

/**
 * Returns the secret in a file, without the line break at its end.
 * @throws OperatorError the file cannot be read or is empty
 */
export function readSecretFile(file: string): string {
  let text: string;
  try {
    text = readFileSync(file, "utf8").replace(/\r?\n$/, "");
  } catch (error) {
    throw new OperatorError(fileFailureText("read", file, error));
  }
  if (text === "") throw new OperatorError(`The file ${file} is empty.`);
  return text;
}
