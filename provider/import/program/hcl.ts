import { codeOf, escaping, printable } from "../../words.ts";
import { HelperCode, lineOf, type Notation } from "./literal.ts";

/** Escapes that have a letter. */
const LETTERS: Readonly<Record<string, string>> = {
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
};

/**
 * A text as Terraform's language writes it, with no reference in it. As in other languages, what could steer an editor is
 * escaped.
 */
export const hclQuoted = (text: string): string => {
  const plain = text.toWellFormed().replaceAll(/["\\]/g, "\\$&");
  const escaped = escaping(plain, (char) => LETTERS[char] ?? escapeOf(char));
  return `"${escaped.replaceAll(/[$%](?=\{)/g, "$&$&")}"`;
};

/** A character by its number, as Terraform's language and YAML write it. */
export function escapeOf(char: string): string {
  const digits = codeOf(char);
  return digits.length > 4 ? `\\U${digits.padStart(8, "0")}` : `\\u${digits.padStart(4, "0")}`;
}

const keyText = (key: string): string => (/^[A-Za-z_][\w-]*$/.test(key) ? key : hclQuoted(key));

const HCL: Notation = {
  text: hclQuoted,
  code: (code) =>
    code instanceof HelperCode
      ? helperCall(code.call.helper, code.call.args.map(hclQuoted).join(", "))
      : code.text,
  member: (key, value) => `${keyText(key)} = ${value}`,
};

/** A value on one line. */
export const hcl = (value: unknown): string => lineOf(value, HCL);

/** How calls of the provider's functions begin. */
export const FUNCTIONS = "provider::gatehouse::";

/** A call of a helper, which is a function of the provider. @param args as they are written */
export const helperCall = (helper: string, args: string): string => `${FUNCTIONS}${helper}(${args})`;

/** A comment of one line. */
export const hclComment = (text: string): string => `# ${printable(text)}`;

/** A block of a configuration. */
export interface Block {
  /** Its type and labels. */
  readonly head: string;
  /** Its attributes, in groups between which there is room. */
  readonly groups: readonly Readonly<Record<string, unknown>>[];
  readonly blocks?: readonly Block[];
}

/** A block as `terraform fmt` leaves it. */
export function blockText({ head, groups, blocks = [] }: Block): string {
  const parts = [...groups.map(groupText), ...blocks.map(blockText)].filter((text) => text !== "");
  if (parts.length === 0) return `${head} {\n}`;
  return `${head} {\n${parts.join("\n\n").replaceAll(/^(?=.)/gm, "  ")}\n}`;
}

/** Attributes, one a line, with their values below each other. */
function groupText(attributes: Readonly<Record<string, unknown>>): string {
  const width = Math.max(...Object.keys(attributes).map(({ length }) => length));
  return Object.entries(attributes)
    .map(([name, value]) => `${name.padEnd(width)} = ${hcl(value)}`)
    .join("\n");
}
