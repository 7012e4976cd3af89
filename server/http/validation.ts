import { issueText, type Operation } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import {
  InvalidError,
  InvalidFieldsError,
  NotFoundError,
  type ServiceError,
  WrongTypeError,
} from "../errors.ts";

/** Operations whose 400 and 409 are arrays of field names (rules section 8). */
export const FIELD_NAME_ERRORS: ReadonlySet<string> = new Set([
  "updateUser",
  "updateUserData",
  "registerUser",
]);

/** Operations whose invalid body is 422 whatever is wrong with it (rules section 8). */
const UNPROCESSABLE_BODIES: ReadonlySet<string> = new Set(["recordSession", "storeSessionRecord"]);

/**
 * Operations that take any text, which they store as JSON: what a device prints must not be able to keep itself out
 * of its recording.
 */
const ANY_TEXT: ReadonlySet<string> = new Set(["recordSession", "storeSessionRecord", "addSessionEvent"]);

type Issue = z.core.$ZodIssue;

/** JSON's name of a value's type. */
function jsonType(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

/** The issue that says most: of a union, that of its first variant, which is the regular one. */
function innermost(issue: Issue): Issue {
  if (issue.code !== "invalid_union") return issue;
  const first = issue.errors[0]?.[0];
  return first ? innermost({ ...first, path: [...issue.path, ...first.path] } as Issue) : issue;
}

/** True when the value has another JSON type than any allowed one (rules section 8: 422). */
function isWrongType(issue: Issue): boolean {
  const value = issue.input;
  if (value === undefined) return false;
  switch (issue.code) {
    case "invalid_type":
      return true;
    case "invalid_value":
      return issue.values.every((allowed) => jsonType(allowed) !== jsonType(value));
    case "invalid_union":
      return issue.errors.every((errors) =>
        errors.some((inner) => inner.path.length === 0 && isWrongType({ ...inner, input: value } as Issue)),
      );
    default:
      return false;
  }
}

// PostgreSQL stores no NUL, and neither database half of a surrogate pair as it came.
const isStorable = (text: string): boolean => !text.includes("\0") && text.isWellFormed();

const NOT_STORABLE = "must hold neither NUL nor half of a surrogate pair";

/** Path of a text that holds NUL or half of a surrogate pair; undefined when there is none. */
function pathOfIllegalText(value: unknown): string[] | undefined {
  if (typeof value === "string") return isStorable(value) ? undefined : [];
  if (typeof value !== "object" || value === null) return undefined;
  for (const [name, inner] of Object.entries(value)) {
    const path = pathOfIllegalText(inner);
    if (path) return [name, ...path];
  }
  return undefined;
}

/**
 * Refuses what no database takes as text. `parse` does it for whatever it reads.
 * @param value of a bounded depth, such as what a schema let through
 * @param name what the value is called in messages, or "" when its fields' names are enough
 * @param fieldNames answer with an array of the names of invalid fields (rules section 8)
 * @throws InvalidError, InvalidFieldsError a text holds NUL or half of a surrogate pair
 */
export function checkTexts(value: unknown, name: string, fieldNames = false): void {
  const path = pathOfIllegalText(value);
  if (path === undefined) return;
  if (fieldNames) throw new InvalidFieldsError(path.slice(0, 1));
  const field = [...(name ? [name] : []), ...path].join(".");
  throw new InvalidError(`${field}: ${NOT_STORABLE}`);
}

/**
 * The value as the schema reads it.
 * @param name what the value is called in messages, or "" when its fields' names are enough
 * @param fieldNames answer with an array of the names of invalid fields (rules section 8)
 * @throws WrongTypeError a value has the wrong JSON type
 * @throws InvalidError, InvalidFieldsError a value is missing or not allowed, or see {@link checkTexts}
 */
export function parse<T extends z.ZodType>(
  schema: T,
  value: unknown,
  name: string,
  fieldNames = false,
): z.output<T> {
  const result = schema.safeParse(value, { error: issueText, reportInput: true });
  if (!result.success) throw refusal(result.error.issues, name, fieldNames);
  checkTexts(result.data, name, fieldNames);
  return result.data;
}

/** True for a parameter of a path that chooses one of a few things to do; any other one says which object is meant. */
const isChoice = (schema: z.ZodType | undefined): boolean => schema?.def.type === "enum";

/** True when the path of the operation names an object, so that there may be none of that name. */
export const namesObject = ({ params }: Pick<Operation, "params">): boolean =>
  Object.values<z.ZodType>(params.shape).some((schema) => !isChoice(schema));

/**
 * The parameters of the path as the operation declares them.
 * @throws NotFoundError one of them is no id that an object can have (rules D49)
 * @throws InvalidError one that chooses among a few values is none of these
 */
export function parseParams(
  operation: Pick<Operation, "params">,
  given: unknown,
): z.output<Operation["params"]> {
  const { params } = operation;
  const result = params.safeParse(given, { error: issueText, reportInput: true });
  if (!result.success) {
    const { issues } = result.error;
    const impossible = issues.find(({ path }) => !isChoice(params.shape[String(path[0])]));
    if (impossible) throw new NotFoundError(noSuchObject(impossible.path.join("."), impossible.message));
    throw refusal(issues, "", false);
  }
  const [name] = pathOfIllegalText(result.data) ?? [];
  if (name !== undefined) throw new NotFoundError(noSuchObject(name, NOT_STORABLE));
  return result.data;
}

const noSuchObject = (name: string, rule: string): string => `${name}: no object can have it, it ${rule}`;

/**
 * The body as the operation declares it; none counts as an empty object, since an operation without required fields
 * needs none.
 * @throws WrongTypeError, InvalidError, InvalidFieldsError see {@link parse}
 */
export function parseBody(operation: Pick<Operation, "id" | "body">, body: unknown): unknown {
  const { id, body: schema } = operation;
  if (schema === undefined) return undefined;
  const fieldNames = FIELD_NAME_ERRORS.has(id);
  const result = schema.safeParse(body === undefined ? {} : body, { error: issueText, reportInput: true });
  if (!result.success) {
    const error = refusal(result.error.issues, "", fieldNames);
    throw UNPROCESSABLE_BODIES.has(id) ? new WrongTypeError(error.message) : error;
  }
  if (!ANY_TEXT.has(id)) checkTexts(result.data, "", fieldNames);
  return result.data;
}

function refusal(issues: readonly Issue[], name: string, fieldNames: boolean): ServiceError {
  const text = (issue: Issue): string => {
    const inner = innermost(issue);
    return `${[...(name ? [name] : []), ...inner.path].join(".") || "body"}: ${inner.message}`;
  };
  const wrongType = issues.find(isWrongType);
  if (wrongType) return new WrongTypeError(text(wrongType));
  if (fieldNames) return new InvalidFieldsError([...new Set(issues.map((issue) => String(issue.path[0])))]);
  return new InvalidError(issues.map(text).join("; "));
}
