// Prints the lines of code by folder (`npm run size [-- --flows]`). With `--flows`, also prints the number of modules
// that each of six flows executes (flows.ts). An example of a flow is `gatehouse up`.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import ts from "typescript";
import { flag, readOptions } from "../bench/commandLine.ts";
import { printFlows } from "./flows.ts";
import { PACKAGES } from "./release/artifacts.ts";
import { ROOT } from "./release/bundle.ts";

const KINDS = { Source: [...PACKAGES, "scripts", "bench", "examples"], Tests: ["test"] };

const NOTES = `

Prints the lines of the tracked *.ts, *.mjs, *.js and *.css files as a Markdown table. Lines with any code are code lines.
"Directly" is the number of files in the folder itself, without its subfolders.

A module is a tracked source file of ${PACKAGES.join(", ")}. A flow executes a module if one of the
module's functions runs. The top level and static fields are not functions, so a flow never executes a module that has only
types or constants. A flow loads a module if one of its processes loads it. Commands and Terraform are measured from
the start of their processes to the end. POST and SSH login are measured in the processes of the service, from the start
of a second call to its end. Timers of the service that run during the call are included.`;

const description =
  "also count the modules that six flows execute, with the built packages: starts a service, an agent, the gatehouse " +
  "command and Terraform (half a minute)";
const { flows } = readOptions("size", { flows: flag(description) }, NOTES);

const topOf = (file: string): string => file.split("/")[0] ?? "";
const read = (file: string): string => readFileSync(join(ROOT, file), "utf8");
const listed = execFileSync("git", ["ls-files", "*.ts", "*.mjs", "*.js", "*.css"], {
  cwd: ROOT,
  encoding: "utf8",
});
const tracked = listed.trim().split("\n");
const files = tracked.filter((file) => Object.values(KINDS).flat().includes(topOf(file)));

/** Counts the code, comment and blank lines of a file. */
function linesOf(file: string) {
  const text = read(file);
  const code = file.endsWith(".css") ? codeOfCss(text) : codeOfScript(file, text);
  const lines = { code: 0, comment: 0, blank: 0 };
  for (const [index, line] of text.replace(/\n$/, "").split("\n").entries())
    lines[code.has(index) ? "code" : line.trim() === "" ? "blank" : "comment"] += 1;
  return lines;
}

function codeOfCss(text: string): Set<number> {
  const bare = text.replaceAll(/\/\*.*?\*\//gs, (comment) => comment.replaceAll(/[^\n]/g, ""));
  return new Set(bare.split("\n").flatMap((line, index) => (line.trim() === "" ? [] : [index])));
}

/** Returns the numbers of the lines that contain at least a part of a token. */
function codeOfScript(file: string, text: string): Set<number> {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const lines = new Set<number>();
  const lineOf = (position: number) => source.getLineAndCharacterOfPosition(position).line;
  const visit = (node: ts.Node): void => {
    if (ts.isJSDoc(node)) return;
    const children = node.getChildren(source);
    for (const child of children) visit(child);
    if (children.length > 0 || node.getWidth(source) === 0) return;
    for (let line = lineOf(node.getStart(source)); line <= lineOf(node.end); line += 1) lines.add(line);
  };
  visit(source);
  return lines;
}

function printLines(): void {
  const lines = new Map(files.map((file) => [file, linesOf(file)]));
  const print = (name: string, among: readonly string[], direct: number | "") => {
    const sum = (kind: "code" | "comment" | "blank") =>
      among.reduce((total, file) => total + (lines.get(file)?.[kind] ?? 0), 0);
    console.log(`| ${[name, among.length, sum("code"), sum("comment"), sum("blank"), direct].join(" | ")} |`);
  };
  const printFolder = (folder: string, name: string) => {
    const within = files.filter((file) => file.startsWith(`${folder}/`));
    print(name, within, within.filter((file) => dirname(file) === folder).length);
    return within;
  };
  console.log("| Folder | Files | Code | Comments | Blank | Directly |\n|---|---:|---:|---:|---:|---:|");
  for (const [kind, tops] of Object.entries(KINDS)) {
    for (const top of tops) {
      const folders = printFolder(top, `**${top}**`).map((file) => file.split("/").slice(0, -1)[1]);
      for (const name of new Set(folders)) if (name) printFolder(`${top}/${name}`, `${top}/${name}`);
    }
    const within = files.filter((file) => tops.includes(topOf(file)));
    print(`**${kind}, total**`, within, "");
  }
  const others = tracked.filter((file) => !files.includes(file));
  console.log(
    `\nExcluded: untracked files, such as server/db/generated; ${others.length} files of other folders: ${others.join(", ")}.`,
  );
}

printLines();
if (flows) await printFlows();
