import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { EngineError, isNoSuchFile } from "../engine/index.ts";
import { idWithin } from "../resources/values.ts";
import { type LiveObject, WATCHED_KINDS } from "./liveObjects.ts";

/** The file beside a program that says which objects may be on the service although no program declares them. */
export const EXCEPTIONS_FILE = "access.ignore";

/** An object, or a kind of object, that need not be declared until a day. */
export interface Exception {
  readonly kind: string;
  /** What stands after the namespace in the object's id; of a member also the e-mail address; `*` for all of the kind. */
  readonly id: string;
  /** The last day on which it holds, in UTC: `2027-01-31`. */
  readonly until: string;
  readonly reason: string;
  /** Where it stands: from 1 on. */
  readonly line: number;
}

const DAY = 24 * 60 * 60_000;
const LINE = /^(?<kind>\S+)\s+(?<id>"(?:[^"\\]|\\.)*"|\S+)\s+until\s+(?<until>\S+?):\s+(?<reason>\S.*)$/u;
const FORM = 'must be: <kind> <id> until <YYYY-MM-DD>: <reason>; an id with white space stands in "…"';

/**
 * Reads the exceptions beside a program; none where there is no such file.
 * @throws EngineError (`project`) naming the line that is wrong, and what is allowed
 */
export async function readExceptions(folder: string): Promise<Exception[]> {
  const file = join(folder, EXCEPTIONS_FILE);
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    if (isNoSuchFile(error)) return [];
    throw new EngineError("project", `${file} cannot be read: ${(error as Error).message}`, { cause: error });
  }
  return text.split("\n").flatMap((line, index) => {
    const content = line.trim();
    return content === "" || content.startsWith("#") ? [] : [parsed(content, index + 1)];
  });
}

function parsed(content: string, line: number): Exception {
  const refuse = (why: string) => new EngineError("project", why, { field: [`${EXCEPTIONS_FILE}:${line}`] });
  const { kind = "", id = "", until = "", reason = "" } = LINE.exec(content)?.groups ?? {};
  if (kind === "") throw refuse(FORM);
  if (!(WATCHED_KINDS as readonly string[]).includes(kind)) {
    throw refuse(`the kind ${kind} is none of ${WATCHED_KINDS.join(", ")}`);
  }
  if (!z.iso.date().safeParse(until).success) throw refuse(`the end ${until} is no day like 2027-01-31`);
  return { kind, id: id.startsWith('"') ? unquoted(id, refuse) : id, until, reason, line };
}

function unquoted(text: string, refuse: (why: string) => Error): string {
  try {
    return JSON.parse(text) as string;
  } catch {
    throw refuse(`the id ${text} is no text in double quotes, as JSON has them`);
  }
}

/** True once the exception holds no more. */
export const hasEnded = ({ until }: Exception, now: Date): boolean =>
  now.getTime() >= Date.parse(until) + DAY;

/** The exception for an object that still holds; undefined for none. */
export function exceptionFor(
  exceptions: readonly Exception[],
  object: LiveObject,
  now: Date,
): Exception | undefined {
  return exceptions.find((exception) => isMeant(exception, object) && !hasEnded(exception, now));
}

/** True where an exception is about an object. */
export function isMeant({ kind, id }: Exception, object: LiveObject): boolean {
  if (kind !== object.definition.name) return false;
  if (id === "*" || id === idWithin(object)) return true;
  return kind === "Member" && id.toLowerCase() === object.name.toLowerCase();
}

/** The line by which an object is excepted. */
export function exceptionLine(object: LiveObject, until: string, reason: string): string {
  const id = object.definition.name === "Member" ? object.name : idWithin(object);
  const text = /^[^\s"]+$/u.test(id) ? id : JSON.stringify(id);
  return `${object.definition.name} ${text} until ${until}: ${reason}`;
}
