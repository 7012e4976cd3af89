import { codeOf, escaping, printable } from "../words.ts";

/** Source code that is written to the program unchanged and without quotation marks, such as a helper call. */
export class Code {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/**
 * A call to the helper `login`, `hostname` or `cidr`, which returns a pattern. The inherited field `text` contains the
 * call in TypeScript. Other languages use `helper` and `args`.
 */
export class HelperCall extends Code {
  readonly helper: "login" | "hostname" | "cidr";
  readonly args: readonly string[];

  constructor(helper: HelperCall["helper"], args: readonly string[]) {
    super(`${helper}(${args.map(quoted).join(", ")})`);
    this.helper = helper;
    this.args = args;
  }
}

interface Notation {
  text(text: string): string;
  code(code: Code): string;
  member(key: string, value: string): string;
}

const WIDTH = 110;

/**
 * Returns a string as a literal of TypeScript and JSON. Characters that can hide or reorder text in an editor, such as
 * direction marks, are escaped.
 */
export const quoted = (text: string): string => escaped(JSON.stringify(text));

/** Escapes the characters in JSON that can hide or reorder text. Each UTF-16 code unit becomes `\uXXXX`. */
const escaped = (json: string): string =>
  escaping(json, (char) =>
    char
      .split("")
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
      .join(""),
  );

/**
 * Returns a value as the content of a JSON file, escaped like {@link quoted}.
 * @param indent number of spaces for each level
 */
export const jsonText = (value: unknown, indent: number): string =>
  `${JSON.stringify(value, null, indent).split("\n").map(escaped).join("\n")}\n`;

function keyText(key: string): string {
  if (key === "__proto__") return '["__proto__"]';
  return /^[A-Za-z_$][\w$]*$/.test(key) ? key : quoted(key);
}

const TYPESCRIPT: Notation = {
  text: quoted,
  code: ({ text }) => text,
  member: (key, value) => (key === value ? key : `${keyText(key)}: ${value}`),
};
const JSON_NOTATION: Notation = { ...TYPESCRIPT, member: (key, value) => `${quoted(key)}: ${value}` };

export const inline = (value: unknown): string => lineOf(value, TYPESCRIPT);

/** Returns a value as JSON on one line, with spaces after commas and colons. */
export const jsonLine = (value: unknown): string => lineOf(value, JSON_NOTATION);

function lineOf(value: unknown, notation: Notation): string {
  const line = (part: unknown) => lineOf(part, notation);
  if (value instanceof Code) return notation.code(value);
  if (typeof value === "string") return notation.text(value);
  if (Array.isArray(value)) return `[${value.map(line).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([key, member]) => notation.member(key, line(member)));
  return members.length === 0 ? "{}" : `{ ${members.join(", ")} }`;
}

/**
 * Formats a value on one line if it fits. Otherwise, puts each array item or object property on its own line.
 * @param available number of characters that are available on the first line
 */
export function literal(value: unknown, indent = "", available = WIDTH): string {
  const line = inline(value);
  if (line.length <= available || value instanceof Code || typeof value !== "object" || value === null)
    return line;
  const inner = `${indent}  `;
  const entries: readonly (readonly [string, unknown])[] = Array.isArray(value)
    ? value.map((item) => ["", item])
    : Object.entries(value).map(([key, item]) => [`${keyText(key)}: `, item]);
  const members = entries.map(
    ([key, item]) => `${inner}${key}${literal(item, inner, WIDTH - inner.length - key.length - 1)},`,
  );
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  return [open, ...members, `${indent}${close}`].join("\n");
}

export function construction(
  type: string,
  name: string,
  args: Readonly<Record<string, unknown>>,
  options?: Readonly<Record<string, unknown>>,
): string {
  const tail = options ? [args, options] : [args];
  const head = `new ${type}(${quoted(name)}, `;
  const line = `${head}${tail.map(inline).join(", ")});`;
  if (line.length <= WIDTH) return line;
  if (!options) return `${head}${literal(args, "", 0)});`;
  const parts = [quoted(name), literal(args, "  ", 0), literal(options, "  ", WIDTH - 3)];
  return [`new ${type}(`, ...parts.map((part) => `  ${part},`), ");"].join("\n");
}

const LETTERS: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/**
 * Returns a string as a literal of Terraform's language, without template expressions. Characters that can hide or
 * reorder text in an editor are escaped.
 */
const hclQuoted = (text: string): string => {
  const plain = text.toWellFormed().replaceAll(/["\\]/g, "\\$&");
  const escaped = escaping(plain, (char) => LETTERS[char] ?? characterEscape(char));
  return `"${escaped.replaceAll(/[$%](?=\{)/g, "$&$&")}"`;
};

/** Returns a character as an escape sequence of Terraform's language and YAML. */
export function characterEscape(char: string): string {
  const digits = codeOf(char);
  return digits.length > 4 ? `\\U${digits.padStart(8, "0")}` : `\\u${digits.padStart(4, "0")}`;
}

const hclKey = (key: string): string => (/^[A-Za-z_][\w-]*$/.test(key) ? key : hclQuoted(key));

const HCL: Notation = {
  text: hclQuoted,
  code: (code) =>
    code instanceof HelperCall ? helperCall(code.helper, code.args.map(hclQuoted).join(", ")) : code.text,
  member: (key, value) => `${hclKey(key)} = ${value}`,
};

export const hcl = (value: unknown): string => lineOf(value, HCL);

export const FUNCTIONS = "provider::gatehouse::";

/**
 * Returns a call to a pattern helper in Terraform's language. In Terraform, the helpers are functions of the provider.
 * @param args source text of the arguments
 */
export const helperCall = (helper: string, args: string): string => `${FUNCTIONS}${helper}(${args})`;

export const hclComment = (text: string): string => `# ${printable(text)}`;

export interface Block {
  readonly head: string;
  /** The attributes of the block, in groups. Blank lines separate the groups. */
  readonly groups: readonly Readonly<Record<string, unknown>>[];
  readonly blocks?: readonly Block[];
}

export function blockText({ head, groups, blocks = [] }: Block): string {
  const parts = [...groups.map(groupText), ...blocks.map(blockText)].filter((text) => text !== "");
  if (parts.length === 0) return `${head} {\n}`;
  return `${head} {\n${parts.join("\n\n").replaceAll(/^(?=.)/gm, "  ")}\n}`;
}

function groupText(attributes: Readonly<Record<string, unknown>>): string {
  const width = Math.max(...Object.keys(attributes).map(({ length }) => length));
  return Object.entries(attributes)
    .map(([name, value]) => `${name.padEnd(width)} = ${hcl(value)}`)
    .join("\n");
}
