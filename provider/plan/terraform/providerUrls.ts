import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseJson } from "@gatehouse-access/sdk/json";
import { fileError } from "../../engine/index.ts";

/**
 * True if the provider blocks with this key in a root module set a setting to exactly this variable. The JSON of a plan
 * does not distinguish `var.url` from `"${var.url}/other"`. Both `.tf` and `.tofu` files count, since the plan does
 * not show which of two files with the same name was used.
 * @param key the key of the block in a plan: `gatehouse`, or `gatehouse.alias`
 * @throws EngineError (`plan_file`) if the folder or a file cannot be read
 */
export function isSettingAlone(folder: string, key: string, setting: string, variable: string): boolean {
  const values = configurationFiles(folder, HCL)
    .flatMap(({ text }) => blocksOf(text))
    .filter((block) => providerKey(block) === key)
    .flatMap(({ given }) => given.get(setting) ?? []);
  return values.length > 0 && values.every((value) => value === `var.${variable}`);
}

/**
 * True if a plan contains the value that Terraform used for this variable when it created the plan: the root module
 * declares the variable, and the variable is not ephemeral. For an ephemeral variable, the JSON of a plan contains the
 * default instead of the used value, and does not indicate that the values may differ.
 * @throws EngineError (`plan_file`) if the folder or a file cannot be read
 */
export function isInPlan(folder: string, variable: string): boolean {
  const declarations = [
    ...configurationFiles(folder, HCL)
      .flatMap(({ text }) => blocksOf(text))
      .filter(({ head }) => labelOf(head, "variable") === variable)
      .map(({ given }) => given.get("ephemeral")),
    ...configurationFiles(folder, JSON_FILES).flatMap(({ text }) => ephemeralInJson(text, variable)),
  ];
  return declarations.length > 0 && declarations.every((ephemeral) => String(ephemeral ?? false) === "false");
}

/** The names of configuration files in the native syntax. */
export const HCL = /^[^.].*\.(?:tf|tofu)$/;
/** The names of configuration files in JSON. */
export const JSON_FILES = /^[^.].*\.(?:tf|tofu)\.json$/;

/** A file of a root module. */
export interface ConfigurationFile {
  /** The name of the file, without the folder. */
  readonly name: string;
  readonly text: string;
}

/**
 * Returns the configuration files whose names match a pattern. Terraform and OpenTofu ignore files that begin with a
 * dot.
 */
export function configurationFiles(folder: string, pattern: RegExp): ConfigurationFile[] {
  try {
    return readdirSync(folder)
      .filter((name) => pattern.test(name))
      .map((name) => ({ name, text: readFileSync(join(folder, name), "utf8") }));
  } catch (cause) {
    const { path = folder } = cause as NodeJS.ErrnoException;
    return fileError("plan_file", "read", path)(cause);
  }
}

/**
 * Returns the value of `ephemeral` in each declaration of a variable in a `.tf.json` file; an empty list for invalid
 * JSON.
 */
function ephemeralInJson(text: string, variable: string): unknown[] {
  const declarations = membersIn(text, "variable", variable);
  return declarations.map((declaration) => memberValues([declaration], "ephemeral")[0]);
}

/**
 * Returns the values at a path in a JSON configuration file, in which each level can be one value or a list of values;
 * an empty list for invalid JSON.
 */
export function membersIn(text: string, ...path: readonly string[]): unknown[] {
  let json: unknown;
  try {
    json = parseJson(text);
  } catch {
    return [];
  }
  return path.reduce<unknown[]>(memberValues, [json].flat());
}

/** Returns the members with this name of all objects in a list. A member that is a list becomes several values. */
export const memberValues = (values: readonly unknown[], name: string): unknown[] =>
  values.flatMap((value) =>
    typeof value === "object" && value !== null && Object.hasOwn(value, name)
      ? [(value as Readonly<Record<string, unknown>>)[name]].flat()
      : [],
  );

/** A top-level block of an HCL file. */
interface Block {
  /** The block header, which is the text before the brace: `provider "gatehouse"`. */
  readonly head: string;
  /** The expressions of the block's attributes, by name. */
  readonly given: ReadonlyMap<string, string>;
  /** The code between the braces, without comments and heredocs. */
  readonly body: string;
}

/**
 * Returns the label of a block header, such as `gatehouse` for `provider "gatehouse"`; undefined for other block types.
 */
function labelOf(head: string, type: string): string | undefined {
  const [, quoted, plain] = new RegExp(`^${type}(?:\\s*"([\\w-]+)"|\\s+([\\w-]+))$`).exec(head) ?? [];
  return quoted ?? plain;
}

/** The key of a provider block in a plan; undefined for a block of another type. */
function providerKey({ head, given }: Pick<Block, "head" | "given">): string | undefined {
  const name = labelOf(head, "provider");
  const [, alias] = /^"([\w-]+)"$/.exec(given.get("alias") ?? "") ?? [];
  return name !== undefined && alias !== undefined ? `${name}.${alias}` : name;
}

/** The top-level blocks of an HCL text. */
export function blocksOf(text: string): Block[] {
  const code = codeOf(text);
  const blocks: Block[] = [];
  let head = "";
  let given = new Map<string, string>();
  let start = 0;
  let opened = 0;
  let depth = 0;
  for (const { 0: mark, index } of code.matchAll(/[\n()[\]{}]/g)) {
    if (")]}".includes(mark)) depth -= 1;
    const written = code.slice(start, index).trim();
    if (depth === 0 && mark === "{") {
      [head, given, start, opened] = [written, new Map(), index + 1, index + 1];
    } else if ((depth <= 1 && mark === "\n") || (depth === 0 && mark === "}")) {
      const [, name, expression = ""] = /^([\w-]+)\s*=(?!=)(.*)$/s.exec(written) ?? [];
      if (name !== undefined) given.set(name, expression.trim());
      start = index + 1;
    }
    if (depth === 0 && mark === "}") blocks.push({ head, given, body: code.slice(opened, index) });
    if ("([{".includes(mark)) depth += 1;
  }
  return blocks;
}

/** Token patterns for HCL code, for the inside of a quoted string, and for the inside of a heredoc. */
const CODE = /#[^\n]*|\/\/[^\n]*|\/\*|<<-?[\w-]+[ \t\r]*\n|./sy;
const QUOTED = /\\.|\$\$\{|%%\{|[$%]\{|./sy;
const HEREDOC = /\$\$\{|%%\{|[$%]\{|./sy;

/** Replaces comments and heredocs in HCL source with spaces. Quoted strings keep only letters, digits, `_` and `-`. */
function codeOf(text: string): string {
  const shown: string[] = [];
  /** The open delimiters: `"`, the end marker of a heredoc, and `{` inside a quoted text or a heredoc. */
  const open: string[] = [];
  for (let at = 0; at < text.length; ) {
    const inside = open.at(-1) ?? "{";
    const tokens = inside === "{" ? CODE : inside === '"' ? QUOTED : HEREDOC;
    tokens.lastIndex = at;
    let token = tokens.exec(text)?.[0] ?? "";
    let isShown = open.length === 0 || (open.length === 1 && inside === '"' && /^["\w-]$/.test(token));
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

/** Like `String.indexOf`, but returns the length of the text if the substring does not occur. */
function indexOf(text: string, part: string, from: number): number {
  const index = text.indexOf(part, from);
  return index < 0 ? text.length : index;
}
