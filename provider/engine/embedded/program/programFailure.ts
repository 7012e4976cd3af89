import { isAbsolute } from "node:path";
import { fileURLToPath } from "node:url";
import { inspect } from "node:util";

/** A position in a source file. Line and column numbers begin at 1. */
export interface Position {
  /** Absolute path, or a path relative to the working directory of the program. */
  readonly file: string;
  readonly line: number;
  readonly column?: number;
}

/** An error that a program threw, as data. The program's process sends this data to the engine. */
export interface ProgramFailure {
  readonly cause: string;
  readonly remedy?: string;
  /** The code of the error if a package of this project threw it; undefined for other errors. */
  readonly code?: string;
  /** The positions in the call stack, innermost first. A compile error has one position. */
  readonly positions: readonly Position[];
  /** The call stack as a string; undefined if the error has no call stack. */
  readonly stack?: string;
}

/** The prefix of a log message that contains program failures as JSON. */
const MARK = "a84f0a0b-6c0e-4a57-9b43-6d5f6a3a1c77:";

/** Returns a log message that contains the program failures. */
export const failureMessage = (failures: readonly ProgramFailure[]): string =>
  MARK + JSON.stringify(failures);

/** Returns the program failures in a log message. Returns undefined for a message without this prefix. */
export const readFailures = (message: string): readonly ProgramFailure[] | undefined =>
  message.startsWith(MARK) ? (JSON.parse(message.slice(MARK.length)) as ProgramFailure[]) : undefined;

/** Error codes of Node.js and TypeScript for a missing module. */
const MISSING_MODULE = ["MODULE_NOT_FOUND", "ERR_MODULE_NOT_FOUND", "TS2307"];
const INSTALL = "Correct the name, or install the package with npm install.";

/**
 * Converts a value that a program threw to failures. A failed compilation results in one failure for each compile
 * error.
 */
export function failuresOf(thrown: unknown): ProgramFailure[] {
  if (!(thrown instanceof Error)) return [{ cause: `The program threw ${inspect(thrown)}.`, positions: [] }];
  const { diagnosticText, code, detail } = thrown as Error &
    Partial<Record<"diagnosticText" | "code" | "detail", unknown>>;
  if (typeof diagnosticText === "string") return compileErrors(diagnosticText);
  const stack = typeof thrown.stack === "string" ? thrown.stack : undefined;
  const isMissing = MISSING_MODULE.includes(String(code));
  return [
    {
      // Node.js appends the list of the modules that require the missing module to the message. The call stack contains
      // the same modules.
      cause: isMissing ? `${thrown.message.split("\n", 1)[0]}.` : causeText(thrown).replaceAll("\t", "  "),
      ...(isMissing && { remedy: INSTALL }),
      ...(typeof code === "string" && typeof detail === "string" && { code }),
      positions: syntaxPosition(thrown, stack) ?? positionsIn(stack),
      ...(stack !== undefined && { stack }),
    },
  ];
}

/**
 * Returns the message of an error and the messages of its causes. Includes the name of the error unless the name is
 * `Error`.
 */
function causeText(error: Error): string {
  const { name, message, cause } = error;
  const isOwn = "detail" in error || name === "Error" || name === "RunError" || name === "ResourceError";
  const text = isOwn ? message || name : message === "" ? name : `${name}: ${message}`;
  if (!(cause instanceof Error) || cause.message === "" || text.includes(cause.message) || "detail" in error)
    return text;
  return isFileError(cause) ? text : `${text}: ${causeText(cause)}`;
}

/**
 * Returns true for an error of a file operation. An error that wraps it already describes the cause in its message.
 */
const isFileError = (error: Error): boolean => "syscall" in error && "path" in error;

/**
 * Parses the compiler's output. Each error has the form `file(line,column): error TS2322: text`, and may continue on
 * indented lines.
 */
function compileErrors(output: string): ProgramFailure[] {
  const errors: { cause: string[]; code: string; positions: Position[] }[] = [];
  for (const line of output.split("\n").map((text) => text.trimEnd())) {
    const { before, code, text } = compilerLine(line) ?? {};
    if (code !== undefined && text !== undefined)
      errors.push({
        cause: [`${text.replace(/\.$/, "")} (${code}).`],
        code,
        positions: before ? [before] : [],
      });
    else if (line !== "") errors.at(-1)?.cause.push(line);
  }
  if (errors.length === 0) return [{ cause: output.trim(), positions: [] }];
  return errors.map(({ cause, code, positions }) => ({
    cause: cause.join("\n"),
    positions,
    ...(MISSING_MODULE.includes(code) && { remedy: INSTALL }),
  }));
}

const COMPILE_ERROR = "error TS";

function compilerLine(line: string) {
  const at = line.indexOf(COMPILE_ERROR);
  if (at < 0) return undefined;
  const [code = "", ...text] = line.slice(at + "error ".length).split(": ");
  const place = line.slice(0, at);
  const open = place.lastIndexOf("(");
  if (at > 0 && (open < 0 || !place.endsWith("): "))) return undefined;
  const [row, column] = place
    .slice(open + 1)
    .split(",")
    .map((part) => Number.parseInt(part, 10));
  const before =
    at > 0
      ? { file: place.slice(0, open), line: row ?? 1, ...(column !== undefined && { column }) }
      : undefined;
  return { code, text: text.join(": "), before };
}

/**
 * Returns the position of a syntax error. Node.js prints the position before the message, in three lines: the file with
 * the line number, the source line, and a caret below the column.
 */
function syntaxPosition(error: Error, stack = ""): Position[] | undefined {
  if (error.name !== "SyntaxError" || stack.startsWith("SyntaxError")) return undefined;
  const [place = "", , mark = ""] = stack.split("\n");
  const position = positionOf(place.trim(), 1);
  if (!position) return undefined;
  const column = mark.indexOf("^") + 1;
  return [column > 0 ? { ...position, column } : position];
}

/** Returns the positions in a call stack that refer to files. */
function positionsIn(stack = ""): Position[] {
  return stack.split("\n").flatMap((line) => {
    const text = line.trim();
    if (!text.startsWith("at ")) return [];
    const open = text.lastIndexOf("(");
    const place =
      text.endsWith(")") && open >= 0 ? text.slice(open + 1, -1) : text.replace(/^at (async )?/, "");
    return positionOf(place, 2) ?? [];
  });
}

/** Parses `file:line` or `file:line:column`. Returns undefined for other strings and for modules of Node.js. */
function positionOf(place: string, numbers: 1 | 2): Position | undefined {
  const parts = place.split(":");
  const [line = Number.NaN, column] = parts.splice(-numbers).map(Number);
  const name = parts.join(":");
  const file = name.startsWith("file://") ? fileURLToPath(name) : name;
  if (!(line > 0) || !isAbsolute(file)) return undefined;
  return { file, line, ...(column !== undefined && { column }) };
}
