import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MINUTE } from "../../sdk/times.ts";
import type { CommandResult } from "../support/command.ts";
import { commandsIn, type PageCommand, pageText } from "../support/pageCommands.ts";
import type { Shell } from "../support/Shell.ts";
import { saveTranscript } from "../support/transcript.ts";

/** The shell of a page, and all other things that its lines need. */
export interface PageContext {
  readonly shell: Shell;
}

/** Registers a function that stops a service or a process at the end of the page, also after a failure. */
export type OnEnd = (stop: () => Promise<unknown>) => void;

/** The expectations of a line, and the work of the test around it. */
interface TypedOptions<C> {
  /** The expected exit code. @default 0 */
  readonly code?: number;
  /** A text that the command prints. */
  readonly prints?: string | RegExp;
  /** Flags that the test adds, for example to confirm without a prompt. */
  readonly adds?: string;
  /** Runs before the line is typed. */
  readonly before?: (context: C) => unknown;
  /** Runs after the line, and checks its effect. */
  readonly after?: (context: C, result: CommandResult) => unknown;
  /** Types the line in another way, for example in the background. Gets the line after the substitutions. */
  readonly by?: (context: C, line: string) => Promise<unknown>;
}

/** A line that the test of its page types. */
interface TypedLine<C> {
  readonly beginning: string;
  readonly typed: TypedOptions<C>;
}

/** A line that another test types, or that no test types. */
type OtherLine = { readonly beginning: string } & (
  | { readonly typedIn: string }
  | { readonly omitted: string }
);

/** A line of a page, with the work of the tests for it. */
export type PageLine<C = never> = TypedLine<C> | OtherLine;

/** A line that the test of its page types. @param beginning the beginning of the line */
export const typed = <C>(beginning: string, options: TypedOptions<C> = {}): TypedLine<C> => ({
  beginning,
  typed: options,
});

/** A line that another test types. @param file the path of this test's file */
export const typedIn = (beginning: string, file: string): OtherLine => ({ beginning, typedIn: file });

/** A line that no test types. @param reason for example the program or the platform that the line needs */
export const omitted = (beginning: string, reason: string): OtherLine => ({ beginning, omitted: reason });

/** A page, and how the tests treat each of its lines. */
export interface PageTest {
  readonly path: string;
  /** The lines of the page. Undefined if another test lists them. */
  readonly lines?: readonly PageLine[];
  /** The tests that type the whole page. */
  readonly files?: readonly string[];
  /** Declares the tests that type the lines. Undefined if this folder types none. */
  readonly declare?: () => void;
}

/** A page of which this folder types no line. */
export const listedPage = (path: string, ...lines: readonly PageLine[]): PageTest => ({ path, lines });

/** A page that another test types, and this test fails if the page has a line that it does not type. */
export const pageTypedIn = (path: string, ...files: readonly string[]): PageTest => ({ path, files });

interface Definition<C extends PageContext> {
  /** The path of the page, from the root of this repository. */
  readonly path: string;
  /** The reason why this machine cannot type the page. Undefined if it can. */
  readonly skip?: string | undefined;
  /** Prepares the shell. @param folder the home directory of the shell */
  start(folder: string, onEnd: OnEnd): Promise<C>;
  /** The lines of the page, in order. */
  readonly lines: readonly PageLine<C>[];
  /** Checks the result of the whole page. */
  readonly after?: (context: C) => unknown;
}

/** Defines the test of a page. */
export function typedPage<C extends PageContext>(definition: Definition<C>): PageTest {
  const { path, lines } = definition;
  return { path, lines, declare: () => declareTests(definition) };
}

/** Returns the differences between the lines of a page and the lines that its test lists. */
export function differences(text: string, lines: readonly PageLine[]): string[] {
  const commands = commandsIn(text);
  const found: string[] = [];
  for (const [index, { line }] of commands.entries()) {
    const beginning = lines[index]?.beginning;
    if (beginning !== undefined && line.startsWith(beginning)) continue;
    found.push(`the page has the line "${line}", the test lists ${beginning && `"${beginning}"`}`);
    return found;
  }
  const more = lines.slice(commands.length).map(({ beginning }) => beginning);
  return more.map((beginning) => `the test lists "${beginning}", which the page does not have`);
}

const SECTION_TIMEOUT = 10 * MINUTE;

/** Declares one test for each section of the page that has commands. */
function declareTests<C extends PageContext>({ path, skip, start, lines, after }: Definition<C>): void {
  const reason = skip === undefined ? "" : ` (skipped: ${skip})`;
  describe.skipIf(skip !== undefined)(`the commands of ${path}${reason}`, { tags: ["long"] }, () => {
    const text = pageText(path);
    const commands = commandsIn(text);
    let folder: string;
    let context: C;
    let hasFailed = false;
    const stops: (() => Promise<unknown>)[] = [];

    beforeAll(async () => {
      expect(differences(text, lines)).toEqual([]);
      folder = mkdtempSync(join(tmpdir(), "gatehouse-page-"));
      // The user of an agent enters the folder.
      chmodSync(folder, 0o711);
      context = await start(folder, (stop) => stops.unshift(stop));
    });
    afterAll(async () => {
      for (const stop of stops) await stop();
      rmSync(folder, { recursive: true, force: true });
      if (context !== undefined) saveTranscript(path, context.shell.transcript);
    });

    const sections = Map.groupBy(commands.entries(), ([, { heading }]) => heading);
    for (const [heading, entries] of sections) {
      it(`of the section "${heading}" work as written`, { timeout: SECTION_TIMEOUT }, async ({ skip }) => {
        if (hasFailed) skip("an earlier section failed");
        hasFailed = true;
        for (const [index, command] of entries) {
          const line = lines[index];
          if (line !== undefined && "typed" in line) await typeLine(context, command, line.typed);
        }
        hasFailed = false;
      });
    }
    if (after !== undefined) {
      it("have the promised result", { timeout: SECTION_TIMEOUT }, async ({ skip }) => {
        if (hasFailed) skip("a section failed");
        await after(context);
      });
    }
  });
}

async function typeLine<C extends PageContext>(
  context: C,
  { line }: PageCommand,
  { code = 0, prints = "", adds, before, after, by }: TypedOptions<C>,
): Promise<void> {
  await before?.(context);
  const { shell } = context;
  const replaced = shell.substituted(line);
  if (by !== undefined) return void (await by(context, replaced));
  const result = await shell.type(adds === undefined ? replaced : `${withoutComment(replaced)} ${adds}`);
  const output = result.stdout + result.stderr;
  const content =
    typeof prints === "string" ? expect.stringContaining(prints) : expect.stringMatching(prints);
  expect([line, result.code, output]).toEqual([line, code, content]);
  await after?.(context, result);
}

/** Returns a line without the comment at its end. */
export const withoutComment = (line: string): string => line.replace(/ +# .*$/, "");
