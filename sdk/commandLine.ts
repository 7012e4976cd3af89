import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** A usage error of a command line, with the code and the message from the library `commander`. */
interface CommandLineProblem {
  readonly code: string;
  readonly message: string;
}

/** The command that reports a usage error. */
interface ReportingCommand {
  /** The names of the command and its parents, such as `gatehouse pulumi install`. */
  readonly path: string;
  /** The names of the command's subcommands and flags. */
  readonly names: readonly string[];
  /** Maps flags to the environment variables that users can set instead. */
  readonly variables: ReadonlyMap<string | undefined, string>;
  /**
   * Maps command names of other programs to the equivalent command names of this program, such as `plan` to `preview`.
   */
  readonly otherNames: Readonly<Record<string, string>>;
}

/** Matches the long flag in a quoted term such as `-s, --stack <name>`. */
const flagIn = (term: string): string => /--[\w-]+/.exec(term)?.[0] ?? term;

/**
 * Returns the message for an invalid command line: one line with the cause and a remedy.
 * @example usageText({ code: "commander.unknownCommand", message: "error: unknown command 'plan'" }, …)
 * // Unknown command plan. Did you mean preview?
 */
function usageText({ code, message }: CommandLineProblem, command: ReportingCommand): string {
  const [problem = "", suggestion = ""] = message.replace(/^error: /, "").split("\n");
  const [first = "", second = ""] = Array.from(problem.matchAll(/'([^']*)'/g), ([, term = ""]) => term);
  const similar = suggestedIn(suggestion);
  const help = `Run ${command.path} --help for a list.`;
  switch (code.replace("commander.", "")) {
    case "unknownCommand":
      return `Unknown command ${first}. ${remedyFor(first, similar, command) ?? help}`;
    case "unknownOption":
      return `Unknown flag ${first}. ${remedyFor(first, similar, command) ?? help}`;
    case "missingArgument":
      return `The argument <${first}> is missing. See ${command.path} --help.`;
    case "optionMissingArgument":
      return `${flagIn(first)} needs a value: ${first.replace(/^-\w, /, "")}.`;
    case "missingMandatoryOptionValue":
      return `The flag ${first} is missing. ${remedyForMissing(flagIn(first), command)}`;
    case "conflictingOption":
      return `${flagIn(first)} cannot be used with ${flagIn(second)}. Remove one of them.`;
    case "excessArguments":
      return `Too many arguments: ${problem.replace(/^.*? got \d+: /, "")} See ${command.path} --help.`;
    case "invalidArgument":
      return invalidText(problem);
    default:
      return problem;
  }
}

function remedyForMissing(flag: string, { path, variables }: ReportingCommand): string {
  const variable = variables.get(flag);
  return variable === undefined ? `See ${path} --help.` : `Set the flag or the variable ${variable}.`;
}

/** The part of an empty `commander` command that {@link similarNames} uses. */
export interface SuggestingCommand {
  option(flags: string): unknown;
  exitOverride(): unknown;
  configureOutput(output: { readonly outputError: () => void }): unknown;
  parse(words: readonly string[], options: { readonly from: "user" }): unknown;
}

/**
 * Returns the names that are equal or similar to a name, as a string such as `a` or `a, b or c`. Returns undefined if
 * there are none. The library `commander` finds the similar names: the function declares each of `names` as a flag, and
 * parses the name as an unknown flag.
 * @param command an empty command
 */
export function similarNames(
  name: string,
  names: readonly string[],
  command: SuggestingCommand,
): string | undefined {
  if (names.includes(name)) return name;
  command.exitOverride();
  command.configureOutput({ outputError: () => {} });
  for (const each of names) command.option(`--${each}`);
  try {
    command.parse([`--${name}`], { from: "user" });
  } catch (error) {
    const { code, message } = error as CommandLineProblem;
    if (code !== "commander.unknownOption") throw error;
    return suggestedIn(message)?.replaceAll("--", "");
  }
  return undefined;
}

/** Returns the names that a message of `commander` suggests; undefined if there are none. */
const suggestedIn = (message: string): string | undefined =>
  /Did you mean (?:one of )?(.+)\?/.exec(message)?.[1]?.replace(/, (?=[^,]*$)/, " or ");

/** Returns the suggestion for an unknown name; undefined if there is none. */
function remedyFor(
  name: string,
  similar: string | undefined,
  { names, otherNames }: ReportingCommand,
): string | undefined {
  const other = Object.hasOwn(otherNames, name) ? otherNames[name] : undefined;
  const meant = other !== undefined && names.includes(other.split(" ")[0] ?? "") ? other : similar;
  return meant && `Did you mean ${meant}?`;
}

/**
 * Rewrites a message such as `option '--format <format>' argument 'x' is invalid. Allowed choices are a, b.` as a
 * sentence with a remedy.
 */
function invalidText(problem: string): string {
  const [, flag = "", flagValue] = /^option '([^']*)' argument '(.*?)' is invalid\./.exec(problem) ?? [];
  const [, value = "", argument = ""] =
    /^command-argument value '(.*?)' is invalid for argument '([^']*)'\./.exec(problem) ?? [];
  const choices = /Allowed choices are (.+)\.$/.exec(problem)?.[1];
  const remedy = choices === undefined ? "" : ` Choose one of ${choices}.`;
  if (flagValue !== undefined) return `${flagIn(flag)} cannot be ${JSON.stringify(flagValue)}.${remedy}`;
  if (argument !== "") return `<${argument}> cannot be ${JSON.stringify(value)}.${remedy}`;
  return problem;
}

/** The part of a `commander` command that {@link reportUsage} uses. */
interface UsageCommand {
  readonly commands: readonly UsageCommand[];
  readonly options: readonly { readonly long?: string | undefined; readonly envVar?: string | undefined }[];
  name(): string;
  exitOverride(
    callback: (problem: CommandLineProblem & Error & { readonly exitCode: number }) => void,
  ): unknown;
}

/**
 * Configures a command and its subcommands to throw an error with a remedy for an invalid command line. After a help
 * text or the version, the command still throws the error of `commander`.
 * @param otherNames see {@link ReportingCommand}
 * @param errorOf creates the error from its message
 */
export function reportUsage(
  command: UsageCommand,
  otherNames: ReportingCommand["otherNames"],
  errorOf: (message: string) => Error,
  path = command.name(),
): void {
  const { commands, options } = command;
  const names = [...commands.map((child) => child.name()), ...options.flatMap(({ long }) => long ?? [])];
  const variables = new Map(
    options.flatMap(({ long, envVar }) => (envVar === undefined ? [] : [[long, envVar] as const])),
  );
  command.exitOverride((problem) => {
    if (problem.exitCode === 0 || problem.code === "commander.help") throw problem;
    throw errorOf(usageText(problem, { path, names, variables, otherNames }));
  });
  for (const child of commands) reportUsage(child, otherNames, errorOf, `${path} ${child.name()}`);
}

/** The last part of a command's help: notes, examples, and the page with more information. */
export interface HelpEnd {
  readonly notes?: string | undefined;
  /** Command lines. A line that begins with `#` is a comment. */
  readonly examples: readonly string[];
  /** Path of the documentation page in the repository, such as `docs/guides/review.md`. */
  readonly page: string;
}

/** The part of a `commander` command that {@link addHelpEnd} uses. */
interface HelpCommand {
  addHelpText(position: "after", text: () => string): unknown;
}

/**
 * Returns the URL of a page in the published documentation. The URL of the documentation is `homepage` in package.json.
 * If package.json has no `homepage`, returns the path of the page in this package.
 *
 * The relative paths are the same in the package and in the repository: package.json and the folder `docs` are in the
 * parent folder of this module.
 */
export function addressOf(page: string, manifest = new URL("../package.json", import.meta.url)): string {
  const { homepage } = JSON.parse(readFileSync(manifest, "utf8")) as { readonly homepage?: string };
  if (homepage === undefined) return fileURLToPath(new URL(page, manifest));
  const path = page.replace(/^docs\//, "").replace(/(\/index)?\.md$/, "/");
  return new URL(path, homepage.replace(/\/?$/, "/")).href;
}

/** Adds the last part to the help of a command. */
export function addHelpEnd<C extends HelpCommand>(command: C, { notes, examples, page }: HelpEnd): C {
  const lines = () => [
    "",
    ...(notes === undefined ? [] : [notes.trim(), ""]),
    examples.length === 1 ? "Example:" : "Examples:",
    ...examples.map((example) => `  ${example}`),
    "",
    `Documentation: ${addressOf(page)}`,
  ];
  command.addHelpText("after", () => lines().join("\n"));
  return command;
}
