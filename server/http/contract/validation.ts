import { ADDITION, issueText, type Operation, operations } from "@gatehouse-access/sdk/contract";
import { z } from "zod";
import {
  InvalidError,
  InvalidFieldsError,
  NotFoundError,
  type ServiceError,
  WrongTypeError,
} from "../../errors.ts";

/** Operations whose 400 and 409 responses are arrays of field names (rules section 8). */
export const FIELD_NAME_ERRORS: ReadonlySet<string> = new Set([
  "updateUser",
  "updateUserData",
  "registerUser",
]);

/** Operations that return 422 for any invalid body (rules section 8). */
const UNPROCESSABLE_BODIES: ReadonlySet<string> = new Set(["recordSession", "storeSessionRecord"]);

/**
 * Operations that also accept text with NUL or lone surrogates, because they store the text as JSON. If these
 * operations rejected such text, a device could prevent the recording of its output by printing such text.
 */
const ANY_TEXT: ReadonlySet<string> = new Set(["recordSession", "storeSessionRecord", "addSessionEvent"]);

type Issue = z.core.$ZodIssue;

function jsonType(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

/**
 * Returns the most specific issue. For a union, returns the issue of its first variant, because the first variant is
 * the regular one.
 */
function innermost(issue: Issue): Issue {
  if (issue.code !== "invalid_union") return issue;
  const first = issue.errors[0]?.[0];
  return first ? innermost({ ...first, path: [...issue.path, ...first.path] } as Issue) : issue;
}

/** Returns true if the value has none of the allowed JSON types (rules section 8: 422). */
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

// PostgreSQL cannot store NUL, and neither database returns a lone surrogate unchanged.
const isStorable = (text: string): boolean => !text.includes("\0") && text.isWellFormed();

const NOT_STORABLE = "must contain neither NUL nor a lone surrogate";

/**
 * Returns the path of the first string that contains NUL or a lone surrogate. Returns undefined if there is no such
 * string.
 */
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
 * Rejects strings that the databases cannot store. `parse` calls this function for every value.
 * @param value value of limited depth, such as the output of a schema
 * @param name prefix of field names in error messages; "" for no prefix
 * @param fieldNames true if the response must be an array of the names of invalid fields (rules section 8)
 * @throws InvalidError, InvalidFieldsError a string contains NUL or a lone surrogate
 */
export function checkTexts(value: unknown, name: string, fieldNames = false): void {
  const path = pathOfIllegalText(value);
  if (path === undefined) return;
  if (fieldNames) throw new InvalidFieldsError(path.slice(0, 1));
  const field = [...(name ? [name] : []), ...path].join(".");
  throw new InvalidError(`${field} ${NOT_STORABLE}`);
}

/**
 * Validates a value, and returns the schema's output.
 * @param name prefix of field names in error messages; "" for no prefix
 * @param fieldNames true if the response must be an array of the names of invalid fields (rules section 8)
 * @throws WrongTypeError a value has the wrong JSON type
 * @throws InvalidError, InvalidFieldsError a value is missing, is not allowed, or fails {@link checkTexts}
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

/**
 * Returns true for a path parameter that selects one of a few actions. Returns false for a parameter that identifies an
 * object.
 */
const isChoice = (schema: z.ZodType | undefined): boolean => schema?.def.type === "enum";

/** Returns true if the operation's path identifies an object. The object may not exist. */
export const namesObject = ({ params }: Pick<Operation, "params">): boolean =>
  Object.values<z.ZodType>(params.shape).some((schema) => !isChoice(schema));

/**
 * Validates the path parameters of an operation.
 * @throws NotFoundError a parameter is an id that no object can have (rules D49)
 * @throws InvalidError a parameter that selects an action has a value for which there is no action
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

const noSuchObject = (name: string, rule: string): string =>
  `${name}: no such object exists; the value ${rule}`;

/**
 * Validates the body of an operation. A missing body is treated as an empty object, which is valid if the operation has
 * no required fields. An addition is a field that this service adds to the API ({@link Additions}).
 * @throws WrongTypeError, InvalidError, InvalidFieldsError see {@link parse}. Also throws InvalidError or
 *   InvalidFieldsError if the body has a field that is probably a misspelled or misplaced addition, because the service
 *   would ignore the field ({@link lostAddition}).
 */
export function parseBody(operation: Operation, body: unknown): unknown {
  const { id, body: schema } = operation;
  if (schema === undefined) return undefined;
  const fieldNames = FIELD_NAME_ERRORS.has(id);
  const result = schema.safeParse(body === undefined ? {} : body, { error: issueText, reportInput: true });
  if (!result.success) {
    const error = refusal(result.error.issues, "", fieldNames);
    throw UNPROCESSABLE_BODIES.has(id) ? new WrongTypeError(error.message) : error;
  }
  const lost = lostAddition(operation, body);
  if (lost !== undefined) {
    throw fieldNames
      ? new InvalidFieldsError([lost.path])
      : new InvalidError(`${lost.path} is an unknown field; ${lost.remedy}`);
  }
  if (!ANY_TEXT.has(id)) checkTexts(result.data, "", fieldNames);
  return result.data;
}

function refusal(issues: readonly Issue[], name: string, fieldNames: boolean): ServiceError {
  const text = (issue: Issue): string => {
    const inner = innermost(issue);
    return `${[...(name ? [name] : []), ...inner.path].join(".") || "body"} ${inner.message}`;
  };
  const wrongType = issues.find(isWrongType);
  if (wrongType) return new WrongTypeError(text(wrongType));
  if (fieldNames) return new InvalidFieldsError([...new Set(issues.map((issue) => String(issue.path[0])))]);
  return new InvalidError(issues.map(text).join("; "));
}

/** The query parameters of a list. Numbers outside the limits are clamped instead of rejected (rules section 6). */
const PAGING: Readonly<Record<string, (value: number) => number | undefined>> = {
  page: (value) => Math.min(Math.max(value, 1), 1_000_000),
  per_page: (value) => (value === 0 ? undefined : Math.min(Math.max(value, 1), 100)),
};

/** Names of the parameters whose values are clamped to their limits. */
export const MOVED_INTO_BOUNDS: ReadonlySet<string> = new Set(Object.keys(PAGING));

/** Returns true for an operation that returns a list in pages. */
export const isList = ({ query }: Operation): boolean =>
  Object.keys(PAGING).some((name) => name in query.shape);

/**
 * Validates the query against the operation's schema, and returns the query. Ignores unknown parameters. Treats an
 * empty parameter as absent.
 * @throws WrongTypeError `page` or `per_page` is not a whole number
 * @throws InvalidError a value is not allowed, or a parameter occurs twice
 */
export function readQuery<O extends Operation>(operation: O, query: unknown): z.output<O["query"]> {
  const given = query as Record<string, string | string[]>;
  const values: Record<string, unknown> = {};
  for (const name of Object.keys(operation.query.shape)) {
    const value = given[name];
    if (value === undefined || value === "") continue;
    // Reject a parameter that occurs twice: the intended value is unknown, and a proxy may have checked only one of the
    // values.
    if (Array.isArray(value)) throw new InvalidError(`${name} must occur once`);
    values[name] = PAGING[name] ? PAGING[name](wholeNumber(name, value)) : value;
  }
  return parse<O["query"]>(operation.query, values, "");
}

function wholeNumber(name: string, text: string): number {
  if (!/^[+-]?\d+$/.test(text)) throw new WrongTypeError(`${name} must be a whole number`);
  return Number(text);
}

/**
 * The additions: fields of request bodies that only this service has, and not other services with this API. The key is
 * the path of the object that contains the fields.
 */
type Additions = ReadonlyMap<string, ReadonlySet<string>>;

type Shape = Readonly<Record<string, z.ZodType>>;

/**
 * A field of a request that is probably a misspelled or misplaced addition of this service. The service would ignore
 * the field.
 */
interface LostField {
  /** Path of the field in the body. */
  readonly path: string;
  readonly remedy: string;
}

const additions = new WeakMap<Pick<Operation, "id">, Additions>();

/**
 * Returns a field that looks like an addition of this service but is not a field of the operation. There are two kinds
 * of such fields. One is a different spelling of an addition, such as `expiresAt`. The other is an addition of another
 * operation on objects of the same kind. If the service ignored the field, an expiry time or an owner would be lost
 * silently. Returns undefined for all other unknown fields. The service ignores them, because clients of other services
 * with this API send them.
 */
function lostAddition(operation: Operation, body: unknown): LostField | undefined {
  let known = additions.get(operation);
  if (known === undefined) {
    known = additionsOf(operation);
    additions.set(operation, known);
  }
  return known.size === 0 ? undefined : find(shapeOf(operation.body), body, "", known);
}

/** Returns the additions of all operations on objects of the same kind as the operation's object. */
function additionsOf({ id, object }: Operation): Additions {
  const all: Operation[] = Object.values(operations);
  const siblings = all.filter((other) => other.id === id || (object !== null && other.object === object));
  const known = new Map<string, Set<string>>();
  for (const { body } of siblings) collect(shapeOf(body), "", known);
  return known;
}

function collect(shape: Shape, path: string, known: Map<string, Set<string>>): void {
  for (const [name, field] of Object.entries(shape)) {
    if (field.meta()?.[ADDITION] === true) known.set(path, (known.get(path) ?? new Set()).add(name));
    collect(shapeOf(field), `${path}${name}.`, known);
  }
}

/** Returns the fields of an object schema. Returns no fields for any other schema. */
function shapeOf(schema: z.ZodType | undefined): Shape {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable) {
    return shapeOf(schema.unwrap() as z.ZodType);
  }
  return schema instanceof z.ZodObject ? schema.shape : {};
}

function find(shape: Shape, value: unknown, path: string, known: Additions): LostField | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const bySpelling = new Map([...(known.get(path) ?? [])].map((name) => [spellingOf(name), name]));
  for (const [name, field] of Object.entries(value)) {
    const isKnown = Object.hasOwn(shape, name);
    const meant = isKnown ? undefined : bySpelling.get(spellingOf(name));
    if (meant !== undefined) {
      const remedy = Object.hasOwn(shape, meant) ? `use ${path}${meant}` : "the operation has no such field";
      return { path: `${path}${name}`, remedy };
    }
    // Search unknown objects too, because the operation may lack the whole object that contains another operation's
    // addition.
    const below = `${path}${name}.`;
    if (![...known.keys()].some((place) => place.startsWith(below))) continue;
    const lost = find(isKnown ? shapeOf(shape[name]) : {}, field, below, known);
    if (lost !== undefined) return lost;
  }
  return undefined;
}

/** Returns the name in a form that is equal for all spellings, such as `expiresAt` and `expires_at`. */
const spellingOf = (name: string): string => name.replaceAll(/[_-]/g, "").toLowerCase();
