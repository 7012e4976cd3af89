import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type * as contract from "@gatehouse-access/sdk/contract";

const require = createRequire(import.meta.url);

/** Most characters of a public key's file; a longer one is some other file. */
const MAX_SIZE = 64 * 1024;

/**
 * The public key in a file, as `ssh-keygen` writes it. Empty lines and comments in the file are skipped. A relative
 * path begins at the working directory, which in a Pulumi program is the program's folder.
 * @throws Error naming the file when it cannot be read, or holds no public key, several, or a private one
 */
export function sshKeyFile(path: string): string {
  const text = readFileSync(path, "utf8");
  if (text.length > MAX_SIZE)
    throw new Error(`${path}: is no file of a public key, it has ${text.length} characters`);
  const lines = text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"));
  const [line] = lines;
  if (line?.includes("PRIVATE KEY")) {
    throw new Error(`${path}: holds a private key; give the file of the public one, which ends in .pub`);
  }
  if (line === undefined || lines.length > 1) {
    throw new Error(`${path}: must hold one public key, and has ${lines.length} lines`);
  }
  // Loaded here, since it would slow the start of every program.
  const { parseSshPublicKey } = require("@gatehouse-access/sdk/contract") as typeof contract;
  try {
    parseSshPublicKey(line);
  } catch (error) {
    throw new Error(`${path}: ${error instanceof Error ? error.message : error}`, { cause: error });
  }
  return line;
}
