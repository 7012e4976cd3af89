import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseJson } from "@gatehouse-access/sdk/json";
import { fileError } from "../../engine/index.ts";

/** The configuration files of a root module. */
export interface RootModule {
  /** The names of the files. */
  readonly files: ReadonlySet<string>;
  /** The top-level blocks of all files. */
  readonly blocks: readonly (Block & { readonly file: string })[];
}

/** A block of a configuration file in HCL or JSON. */
export interface Block extends Body {
  /** The type and the labels of the block: `provider`, `gatehouse`. */
  readonly labels: readonly string[];
}

interface Body {
  /**
   * The arguments, by name. For an HCL file, a value is the code of the expression. For a JSON file, it is the JSON
   * value.
   */
  readonly values: ReadonlyMap<string, unknown>;
  /** The nested blocks. For a JSON file, only the block types in {@link LABELS}. */
  readonly blocks: readonly Block[];
}

/**
 * Reads the configuration files of a root module. Omits files whose names begin with a dot, because Terraform and
 * OpenTofu ignore them. Reads both `.tf` and `.tofu` files, since a plan does not show which of two files with the same
 * name was used.
 * @throws EngineError (`plan_file`) if the folder or a file cannot be read
 */
export function readRootModule(folder: string): RootModule {
  try {
    const files = readdirSync(folder).filter((name) => /^[^.].*\.(?:tf|tofu)(?:\.json)?$/.test(name));
    const blocks = files.flatMap((file) => {
      const text = readFileSync(join(folder, file), "utf8");
      const found = file.endsWith(".json") ? blocksInJson(jsonOf(text)) : bodyOf(codeOf(text)).blocks;
      return found.map((block) => ({ ...block, file }));
    });
    return { files: new Set(files), blocks };
  } catch (cause) {
    const { path = folder } = cause as NodeJS.ErrnoException;
    return fileError("plan_file", "read", path)(cause);
  }
}

/** Parses a JSON string. Returns undefined if the string is invalid. */
function jsonOf(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/** The number of labels of each block type that is read from JSON files. */
const LABELS: ReadonlyMap<string, number> = new Map([
  ["provider", 1],
  ["variable", 1],
  ["resource", 2],
  ["lifecycle", 0],
]);

/** Returns the blocks in a JSON value. On each level, the value can be a single value or a list of values. */
const blocksInJson = (json: unknown): Block[] =>
  membersIn(json).flatMap(([type, value]) => {
    const labels = LABELS.get(type);
    return labels === undefined ? [] : labeledBlocks(value, labels, [type]);
  });

function labeledBlocks(json: unknown, count: number, labels: readonly string[]): Block[] {
  if (count > 0)
    return membersIn(json).flatMap(([name, value]) => labeledBlocks(value, count - 1, [...labels, name]));
  return [json]
    .flat()
    .map((body) => ({ labels, values: new Map(membersIn(body)), blocks: blocksInJson(body) }));
}

/** Returns the members of an object, or of all objects in a list. */
const membersIn = (json: unknown): [string, unknown][] =>
  [json].flat().flatMap((value) => (typeof value === "object" ? Object.entries(value ?? {}) : []));

/** Returns the arguments and blocks in a file, or in the body of a block. @param code the result of {@link codeOf} */
function bodyOf(code: string): Body {
  const values = new Map<string, string>();
  const blocks: Block[] = [];
  let depth = 0;
  let start = 0;
  let opened: { readonly labels: readonly string[]; readonly at: number } | undefined;
  for (const { 0: mark, index } of `${code}\n`.matchAll(/[\n()[\]{}]/g)) {
    if (")]}".includes(mark)) depth -= 1;
    if (depth === 0) {
      const written = code.slice(start, index).trim();
      if (mark === "{" && !written.includes("=")) {
        opened = { labels: written.match(/[\p{ID_Continue}-]+/gu) ?? [], at: index + 1 };
      } else if (mark === "}" && opened) {
        blocks.push({ labels: opened.labels, ...bodyOf(code.slice(opened.at, index)) });
        opened = undefined;
        start = index + 1;
      } else if (mark === "\n") {
        const [, name, expression = ""] = /^([\p{ID_Continue}-]+)\s*=(.*)$/su.exec(written) ?? [];
        if (name !== undefined) values.set(name, expression.trim());
        start = index + 1;
      }
    }
    if ("([{".includes(mark)) depth += 1;
  }
  return { values, blocks };
}

/** Token patterns for HCL code, for the inside of a quoted string, and for the inside of a heredoc. */
const CODE = /#[^\n]*|\/\/[^\n]*|\/\*|<<-?[\p{ID_Continue}-]+[ \t\r]*\n|./suy;
const QUOTED = /\\.|\$\$\{|%%\{|[$%]\{|./suy;
const HEREDOC = /\$\$\{|%%\{|[$%]\{|./suy;

/**
 * Replaces comments and heredocs in HCL source with spaces. In quoted strings, keeps only the characters that a name
 * can contain.
 */
function codeOf(text: string): string {
  const shown: string[] = [];
  /** The open delimiters: `"`, the end marker of a heredoc, and `{` inside a quoted string or a heredoc. */
  const open: string[] = [];
  for (let at = 0; at < text.length; ) {
    const inside = open.at(-1) ?? "{";
    const tokens = inside === "{" ? CODE : inside === '"' ? QUOTED : HEREDOC;
    tokens.lastIndex = at;
    let token = tokens.exec(text)?.[0] ?? "";
    let isShown =
      open.length === 0 || (open.length === 1 && inside === '"' && /^["\p{ID_Continue}-]$/u.test(token));
    if (tokens === CODE && (token.startsWith("#") || token.length > 1)) {
      isShown = false;
      if (token === "/*") token = text.slice(at, indexOf(text, "*/", at + 2) + 2);
      else if (token.startsWith("<<")) open.push(token.replace(/^<<-?/, "").trim());
    } else if (tokens === CODE) {
      if (token === '"' || (token === "{" && open.length > 0)) open.push(token);
      else if (token === "}") open.pop();
    } else if (/^[$%]\{$/.test(token)) {
      open.push("{");
    } else if (tokens === QUOTED && token === '"') {
      open.pop();
    } else if (tokens === HEREDOC && text[at - 1] === "\n") {
      const line = text.slice(at, indexOf(text, "\n", at));
      if (line.trim() === inside) {
        token = line;
        open.pop();
      }
    }
    shown.push(isShown ? token : " ".repeat(token.length));
    at += token.length;
  }
  return shown.join("");
}

/** Works like `String.indexOf`, but returns the length of the text if it does not contain the substring. */
function indexOf(text: string, part: string, from: number): number {
  const index = text.indexOf(part, from);
  return index < 0 ? text.length : index;
}
