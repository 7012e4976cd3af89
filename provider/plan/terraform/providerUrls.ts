import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { EngineError } from "../../engine/index.ts";

/**
 * True if the provider blocks of a root module with this key set their url to this variable alone. The JSON of a plan does
 * not distinguish `var.url` from `"${var.url}/other"`. All `.tf` and `.tofu` files count: the plan does not contain which
 * of two files of the same name was used.
 * @param key the key of the block in a plan: `gatehouse`, or `gatehouse.alias`
 * @throws EngineError (`plan_file`) if the folder or a file cannot be read
 */
export function isUrlAlone(folder: string, key: string, variable: string): boolean {
  const urls = configurationFiles(folder)
    .flatMap(providerBlocks)
    .filter((block) => block.key === key)
    .flatMap(({ url }) => url ?? []);
  return urls.length > 0 && urls.every((url) => url === `var.${variable}`);
}

/** The HCL files. Terraform and OpenTofu ignore those whose name begins with a dot. */
function configurationFiles(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter((file) => /^[^.].*\.(?:tf|tofu)$/.test(file))
      .map((file) => readFileSync(join(folder, file), "utf8"));
  } catch (cause) {
    const { code, path } = cause as NodeJS.ErrnoException;
    const message = `Cannot read the configuration: ${path ?? folder} (${code})`;
    throw new EngineError("plan_file", message, { cause });
  }
}

/** The provider blocks in an HCL text: their keys in a plan, and the expressions of their urls. */
function providerBlocks(text: string) {
  const code = codeOf(text);
  const blocks: { key: string; url: string | undefined }[] = [];
  let head = "";
  let given = new Map<string, string>();
  let start = 0;
  let depth = 0;
  for (const { 0: mark, index } of code.matchAll(/[\n()[\]{}]/g)) {
    if (")]}".includes(mark)) depth -= 1;
    const written = code.slice(start, index).trim();
    if (depth === 0 && mark === "{") {
      [head, given, start] = [written, new Map(), index + 1];
    } else if ((depth <= 1 && mark === "\n") || (depth === 0 && mark === "}")) {
      const [, name, expression = ""] = /^([\w-]+)\s*=(?!=)(.*)$/s.exec(written) ?? [];
      if (name !== undefined) given.set(name, expression.trim());
      start = index + 1;
    }
    if (depth === 0 && mark === "}") {
      const [, quoted, plain] = /^provider(?:\s*"([\w-]+)"|\s+([\w-]+))$/.exec(head) ?? [];
      const [, alias] = /^"([\w-]+)"$/.exec(given.get("alias") ?? "") ?? [];
      const key = [quoted ?? plain, alias].filter((part) => part !== undefined).join(".");
      blocks.push({ key, url: given.get("url") });
    }
    if ("([{".includes(mark)) depth += 1;
  }
  return blocks;
}

/** Tokens of HCL: of code, of a quoted text, and of a heredoc. */
const CODE = /#[^\n]*|\/\/[^\n]*|\/\*|<<-?[\w-]+[ \t\r]*\n|./sy;
const QUOTED = /\\.|\$\$\{|%%\{|[$%]\{|./sy;
const HEREDOC = /\$\$\{|%%\{|[$%]\{|./sy;

/**
 * An HCL text with spaces in place of comments, heredocs, and everything within quotes except letters, digits, `_` and `-`.
 */
function codeOf(text: string): string {
  const shown: string[] = [];
  /** The open delimiters: `"`, the last line of a heredoc, and `{` within these. */
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

function indexOf(text: string, part: string, from: number): number {
  const found = text.indexOf(part, from);
  return found < 0 ? text.length : found;
}
