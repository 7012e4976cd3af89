import { mkdirSync, statSync } from "node:fs";
import { OperatorError } from "./OperatorError.ts";

/** Permission bits of the group and of others. Windows has none of them. */
export const othersMayWrite = 0o022;
export const othersMayDoAnything = 0o077;
/** Those of others alone. */
export const strangersMayDoAnything = 0o007;

/** True when others than the file's user have one of the permissions. */
export function openToOthers(path: string, permissions: number): boolean {
  return process.platform !== "win32" && (statSync(path).mode & permissions) !== 0;
}

/**
 * Makes the data folder (for its user alone) when there is none.
 * @throws OperatorError when it cannot be made, is not a folder, or others may write into it: they could put
 * a signing key of their own there
 */
export function prepareDataFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new OperatorError(`Cannot make the data folder ${folder}: ${reason}`, { cause: error });
  }
  if (openToOthers(folder, othersMayWrite)) {
    throw new OperatorError(`Others may write into the data folder ${folder}: run \`chmod 700 ${folder}\``);
  }
}
