import { readdirSync, readFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";

/** A root module and its workspace, which are what a project and a stack are elsewhere. */
export interface Workspace {
  readonly project: string;
  readonly stack: string;
}

/**
 * The workspace that Terraform has selected in a folder.
 * @param env names another one, or another data folder, as for Terraform
 */
export function workspaceIn(folder: string, env: NodeJS.ProcessEnv): Workspace {
  const stack = env.TF_WORKSPACE || selectedIn(env.TF_DATA_DIR || join(folder, ".terraform")) || "default";
  return { project: basename(resolve(folder)) || "terraform", stack };
}

/** A plain text in quotes, or a variable alone, with what may follow on its line. */
const ALONE = /^(?:"[^"$%\\]*"|var\.([\w-]+))[ \t\r]*(?:$|[},#]|\/\/)/;

/**
 * True where every url that the files of a root module give is a text or a variable alone, and one is this variable. The
 * JSON of a plan tells `var.url` and `"${var.url}/other"` not apart: it names the variable in either case.
 */
export function isUrlAlone(folder: string, variable: string): boolean {
  const files = readdirSync(folder).filter((file) => file.endsWith(".tf"));
  const given = files.flatMap((file) => {
    const text = readFileSync(join(folder, file), "utf8");
    const urls = text.matchAll(/\burl"?[ \t]*=(?!=)[ \t]*(?=([^\n]*))/g);
    return [...urls].map(([, expression = ""]) => ALONE.exec(expression));
  });
  return given.every((found) => found !== null) && given.some((found) => found?.[1] === variable);
}

function selectedIn(dataFolder: string): string | undefined {
  try {
    return readFileSync(join(dataFolder, "environment"), "utf8").trim();
  } catch {
    // Without the file it is the default one.
    return undefined;
  }
}
