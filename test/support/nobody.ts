import { lchownSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** True if this process runs as root. Only root can start processes as another user and change owners of files. */
export const isRoot = process.getuid?.() === 0;

/** The id of the user `nobody`, which is the same on all common systems. */
export const NOBODY = 65_534;

/**
 * Makes `nobody` the owner of a folder and of all files in it. Changes links themselves, not their targets. Requires
 * root.
 */
export function giveToNobody(folder: string): void {
  for (const path of ["", ...readdirSync(folder, { recursive: true, encoding: "utf8" })]) {
    lchownSync(join(folder, path), NOBODY, NOBODY);
  }
}
