import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The folder of this repository. */
export const ROOT = join(import.meta.dirname, "..", "..");

/** Returns the text of a page. @param path the path from the root of this repository */
export const pageText = (path: string): string => readFileSync(join(ROOT, path), "utf8");

/** A code block of a page, without its indentation. */
interface Block {
  /** The language after the opening fence, such as `sh`. */
  readonly language: string;
  /** The nearest heading before the block. */
  readonly heading: string;
  readonly text: string;
}

/** Returns the code blocks of a text, in order. */
export function blocksOf(text: string): readonly Block[] {
  const blocks: Block[] = [];
  let heading = "";
  let open: { indent: string; language: string; lines: string[] } | undefined;
  for (const line of text.split("\n")) {
    const [, indent = "", language = ""] = /^( *)```(\w*)/.exec(line) ?? [];
    if (open !== undefined && line === `${open.indent}\`\`\``) {
      blocks.push({ language: open.language, heading, text: open.lines.map((one) => `${one}\n`).join("") });
      open = undefined;
    } else if (open !== undefined) {
      open.lines.push(line.startsWith(open.indent) ? line.slice(open.indent.length) : line);
    } else if (language !== "") open = { indent, language, lines: [] };
    else if (/^#+ /.test(line)) heading = line.replace(/^#+ /, "");
  }
  return blocks;
}

/** Returns the texts of the code blocks in one language. */
export const blocksIn = (text: string, language: string): readonly string[] =>
  blocksOf(text)
    .filter((block) => block.language === language)
    .map((block) => block.text);

/** A command that a page prints for its reader. */
export interface PageCommand {
  readonly heading: string;
  /** The command line. Continuation lines, and the lines of a loop, belong to its first line. */
  readonly line: string;
}

/** Returns the commands of a text: each line of its `sh` blocks, and each line after `$ ` of its `console` blocks. */
export function commandsIn(text: string): readonly PageCommand[] {
  return blocksOf(text).flatMap(({ language, heading, text: block }) => {
    if (language !== "sh" && language !== "console") return [];
    const lines = block.split("\n");
    const typed =
      language === "sh"
        ? lines
        : lines.filter((line) => line.startsWith("$ ")).map((line) => line.slice("$ ".length));
    return joined(typed)
      .filter((line) => !/^\s*(#|$)/.test(line))
      .map((line) => ({ heading, line }));
  });
}

/** Joins the lines of a command that has several lines. */
function joined(lines: readonly string[]): string[] {
  const commands: string[] = [];
  let isOpen = false;
  let inLoop = false;
  for (const line of lines) {
    if (isOpen) commands.push(`${commands.pop()}\n${line}`);
    else commands.push(line);
    if (/^for .*; do$/.test(line)) inLoop = true;
    if (/^done$/.test(line)) inLoop = false;
    isOpen = inLoop || line.endsWith("\\");
  }
  return commands;
}
