import { ADDITION, type Operation, operations } from "@gatehouse-access/sdk/contract";
import { z } from "zod";

/** The fields that this service adds to bodies, by the path of the object that contains them. */
type Additions = ReadonlyMap<string, ReadonlySet<string>>;

type Shape = Readonly<Record<string, z.ZodType>>;

/** A field of a request that the service would ignore, although the client probably means an addition. */
interface LostField {
  /** Path of the field in the body. */
  readonly path: string;
  readonly remedy: string;
}

const additions = new WeakMap<Pick<Operation, "id">, Additions>();

/**
 * Returns a field that looks like an addition of this service but is not a field of the operation: another spelling of an
 * addition, such as `expiresAt`, or an addition of another operation on objects of the same kind. If the service ignored
 * such a field, an end or an owner would be lost silently. Other unknown fields have no effect, as on other services of
 * the API, because their clients send them.
 */
export function lostAddition(operation: Operation, body: unknown): LostField | undefined {
  let known = additions.get(operation);
  if (known === undefined) {
    known = additionsOf(operation);
    additions.set(operation, known);
  }
  return known.size === 0 ? undefined : find(shapeOf(operation.body), body, "", known);
}

/** Returns the additions of all operations on objects of the operation's kind. */
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

/** Returns the fields of an object; none for other values. */
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
    // The operation may lack the whole object that contains the addition of another operation.
    const below = `${path}${name}.`;
    if (![...known.keys()].some((place) => place.startsWith(below))) continue;
    const lost = find(isKnown ? shapeOf(shape[name]) : {}, field, below, known);
    if (lost !== undefined) return lost;
  }
  return undefined;
}

/** Returns a name without the characters that distinguish spellings: `expiresAt` and `expires_at` are equal. */
const spellingOf = (name: string): string => name.replaceAll(/[_-]/g, "").toLowerCase();
