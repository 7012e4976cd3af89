import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type * as contract from "@gatehouse-access/sdk/contract";
import { fileFailureText } from "@gatehouse-access/sdk/errors";

const require = createRequire(import.meta.url);

/** The maximum length of a public key file, in characters. A longer file is not a public key. */
const MAX_SIZE = 64 * 1024;

/**
 * Reads a file as text.
 * @throws Error with the cause and a remedy if the file cannot be read
 */
function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw new Error(fileFailureText("read", path, cause), { cause });
  }
}

/**
 * Returns the public key in a file that `ssh-keygen` wrote. Skips empty lines and comments. A relative path is relative
 * to the working directory, which is the project directory in a Pulumi program.
 * @throws Error with the file's name if the file cannot be read, does not contain exactly one public key, or contains a
 *   private key
 */
export function sshKeyFile(path: string): string {
  const text = readText(path);
  if (text.length > MAX_SIZE)
    throw new Error(`The file ${path} is not a public key: it has ${text.length} characters.`);
  const lines = text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"));
  const [line] = lines;
  if (line?.includes("PRIVATE KEY")) {
    throw new Error(
      `The file ${path} contains a private key. Use the file of the public key, which ends in .pub.`,
    );
  }
  if (line === undefined || lines.length > 1) {
    throw new Error(`The file ${path} must contain exactly one public key, but has ${lines.length} lines.`);
  }
  // The schema of the service's API is only imported here. An import at the top of the file would slow the start of
  // every program.
  const { parseSshPublicKey } = require("@gatehouse-access/sdk/contract") as typeof contract;
  try {
    parseSshPublicKey(line);
  } catch (error) {
    throw new Error(
      `The file ${path} is not a public key: ${error instanceof Error ? error.message : error}.`,
      { cause: error },
    );
  }
  return line;
}
