import { lchownSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** Whether this process is root, and so may start processes of another user and give files away. */
export const isRoot = process.getuid?.() === 0;

/** The user `nobody`, which has this id on every common system. */
export const NOBODY = 65_534;

/** Gives a folder and all its content to `nobody`; of links the link itself. Only root may do so. */
export function giveToNobody(folder: string): void {
  for (const path of ["", ...readdirSync(folder, { recursive: true, encoding: "utf8" })]) {
    lchownSync(join(folder, path), NOBODY, NOBODY);
  }
}
