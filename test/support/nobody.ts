import { lchownSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** True if this process is root, which can start processes as another user and change owners of files. */
export const isRoot = process.getuid?.() === 0;

/** The user `nobody`, which has this id on every common system. */
export const NOBODY = 65_534;

/** Changes the owner of a folder and all its content to `nobody`, of links the link itself. Requires root. */
export function giveToNobody(folder: string): void {
  for (const path of ["", ...readdirSync(folder, { recursive: true, encoding: "utf8" })]) {
    lchownSync(join(folder, path), NOBODY, NOBODY);
  }
}
