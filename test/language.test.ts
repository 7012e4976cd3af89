import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { describe, expect, it } from "vitest";

/** Phrases that no text may have, and the field's words for them. */
const PHRASES: readonly (readonly [phrase: RegExp, write: string])[] = [
  [
    /\b(nobody|somebody|anybody|everybody|no one|someone|anyone|everyone|whoever|whomever)\b/gi,
    "a role: user, operator, administrator, attacker, client, caller",
  ],
  [/\b(a stranger|strangers?)\b/gi, "a role: attacker, unauthenticated client"],
  [/\bby hand\b/gi, "manually, out of band"],
  [/\bin no program\b/gi, "unmanaged, not declared"],
  [/\b(stands?|standing|something|anything|nothing) against\b/gi, "blocking finding, blocks"],
  [/\b(is|are|was|were|be|been|being) (never |not |also )?told\b/gi, "reports, prints, logs, notifies"],
  [/\b(says? so|tells? of|telling of)\b/gi, "reports, prints"],
  [/\b(is|are|was|were) (gone|no more)\b/gi, "is deleted, no longer exists"],
  [/\bin clear\b/gi, "in plaintext"],
  [/\block-outs?\b/gi, "lockout"],
  [/\b(mend|mends|mended|mending)\b/gi, "fix"],
  [/\b(anew|bring into being|brought into being)\b/gi, "again; create, restart, regenerate"],
  [/\btwins?\b/gi, "duplicate, duplicate declarations"],
  [/\b(front doors?|ways? in(?=[.,;:)]))\b/gi, "provider, plugin, front end"],
  [/\b(the )?other half of\b/gi, "private key"],
  [/\ba word on\b/gi, "status of"],
  [/\bthat which\b/gi, "a noun"],
  [/\b(missing rights|may not do)\b/gi, "missing permissions, permission denied"],
  [/\b(is|are|was|were) meant\b/gi, "refers to, matches"],
  [/\b(leaves?|leaving|left) (\w+ )?out\b/gi, "omits; default"],
  [/\b(takes?|took|taking) over\b/gi, "adopts"],
  [/\b(looks?|looked|looking) at\b/gi, "evaluates, checks, reads"],
  [/\bwhat is there\b/gi, "existing objects"],
  [/\bcan not\b/gi, "cannot"],
];

/** First words of a comment that begins with a relative clause and no noun. */
const OPENER = /^(What|Whose|How|That|Which|Who)\b/;

const root = join(import.meta.dirname, "..");
const IGNORED = /(^|\/)(recorded|node_modules)\/|^test\/language\.test\.ts$|^provider\/schemas\//;
const files = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
  cwd: root,
  encoding: "utf8",
})
  .split("\0")
  .filter((file) => /\.(md|ts)$/.test(file) && !IGNORED.test(file));

/** A paragraph, a comment or a text literal. */
interface Text {
  /** The line number at which the text starts. */
  readonly line: number;
  /** The text with each line break replaced by a space. */
  readonly text: string;
  readonly isComment: boolean;
}

const lineOf = (source: string, position: number) => source.slice(0, position).split("\n").length;
const CODE = /`[^`\n]*`/g;
const onOneLine = (text: string) => text.replaceAll(CODE, "`code`").replaceAll(/\s+/g, " ").trim();

/** The paragraphs of a Markdown file, without code. */
function paragraphsOf(source: string): readonly Text[] {
  const blank = (code: string) => code.replaceAll(/[^\n]/g, "");
  const prose = source.replaceAll(/^( *)```[\s\S]*?^\1```/gm, blank);
  return [...prose.matchAll(/\S(?:.|\n(?!\s*\n))*/g)].map(({ index, 0: text }) => ({
    line: lineOf(prose, index),
    text: onOneLine(text),
    isComment: false,
  }));
}

/** True for the title of a test: the first argument of `it`, `test` or `describe`. */
function isTitle({ parent }: ts.Node): boolean {
  return ts.isCallExpression(parent) && /^(it|test|describe)\b/.test(parent.expression.getText());
}

/**
 * The comments and the sentences in text literals of a TypeScript file. A literal of one word is a value. The literals of
 * tests are data, which may be recorded, except their titles.
 */
function textsOf(file: string, source: string): readonly Text[] {
  const tree = ts.createSourceFile(file, source, ts.ScriptTarget.Latest, true);
  const texts = new Map<number, Omit<Text, "line">>();
  let previous: { readonly position: number; readonly text: string } | undefined;
  const visit = (node: ts.Node): void => {
    for (const { pos, end } of [
      ...(ts.getLeadingCommentRanges(source, node.getFullStart()) ?? []),
      ...(ts.getTrailingCommentRanges(source, node.getEnd()) ?? []),
    ]) {
      const text = source.slice(pos, end).replaceAll(/^\s*(\/\*+|\*(?!\/)|\/\/)|\*\/$/gm, "");
      // Joins the lines of one comment, so that the test also finds phrases that contain a line break.
      const isContinued =
        previous !== undefined &&
        source.startsWith("//", pos) &&
        source.startsWith("//", previous.position) &&
        /^[^\n]*\n\s*$/.test(source.slice(previous.position, pos));
      if (isContinued) texts.delete(previous?.position ?? pos);
      previous = { position: pos, text: onOneLine(`${isContinued ? previous?.text : ""} ${text}`) };
      texts.set(pos, { text: previous.text, isComment: true });
    }
    const isText =
      ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node);
    if (isText && node.text.trim().includes(" ") && (!file.startsWith("test/") || isTitle(node))) {
      texts.set(node.getStart(tree), { text: onOneLine(node.text), isComment: false });
    }
    for (const child of node.getChildren(tree)) visit(child);
  };
  visit(tree);
  return [...texts].map(([position, text]) => ({ line: lineOf(source, position), ...text }));
}

const textsByFile = new Map(
  files.map((file) => {
    const source = readFileSync(join(root, file), "utf8");
    return [file, file.endsWith(".md") ? paragraphsOf(source) : textsOf(file, source)];
  }),
);

describe("texts", () => {
  it("cover every part of the project", () => {
    const parts = new Set(files.map((file) => file.split("/")[0]));
    expect([...parts]).toEqual(
      expect.arrayContaining([
        "README.md",
        "agent",
        "bench",
        "docs",
        "examples",
        "provider",
        "sdk",
        "server",
        "test",
      ]),
    );
  });

  it("have none of the phrases that the field does not use", () => {
    const found: string[] = [];
    for (const [file, texts] of textsByFile) {
      for (const { line, text } of texts) {
        for (const [phrase, write] of PHRASES) {
          for (const [match] of text.matchAll(phrase))
            found.push(`${file}:${line}: "${match}": write ${write}`);
        }
      }
    }
    expect(found).toEqual([]);
  });

  it("open no comment with a clause that has no noun", () => {
    const found: string[] = [];
    for (const [file, texts] of textsByFile) {
      for (const { line, text, isComment } of texts) {
        if (isComment && OPENER.test(text)) found.push(`${file}:${line}: ${text.slice(0, 80)}`);
      }
    }
    expect(found).toEqual([]);
  });
});
