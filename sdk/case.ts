import { z } from "zod";

type CamelParts<
  S extends string,
  Separator extends string,
> = S extends `${infer Head}${Separator}${infer Tail}`
  ? `${Head}${Capitalize<CamelParts<Tail, Separator>>}`
  : S;

/** The spelling of a wire key in TypeScript: `tenant_id` → `tenantId`, `user-id` → `userId`. */
type CamelKey<K> = K extends string ? CamelParts<CamelParts<K, "-">, "_"> : K;

/** The type `T` with the keys of all objects in camelCase. The keys of records do not change. */
export type Camelized<T> = T extends readonly (infer Item)[]
  ? Camelized<Item>[]
  : T extends object
    ? { [K in keyof T as CamelKey<K>]: Camelized<T[K]> }
    : T;

/** Like {@link Camelized}, for values that a caller passes. Lists in these values may be read-only. */
export type CamelizedInput<T> = T extends readonly (infer Item)[]
  ? readonly CamelizedInput<Item>[]
  : T extends object
    ? { [K in keyof T as CamelKey<K>]: CamelizedInput<T[K]> }
    : T;

/** The camelCase spelling of one wire key, as {@link CamelKey} defines it for types. */
export function camelKey(key: string): string {
  return key
    .split(/[_-]/)
    .map((part, index) => (index === 0 ? part : part.charAt(0).toUpperCase() + part.slice(1)))
    .join("");
}

/**
 * Describes how the keys of a value are converted between the wire format and camelCase. The value may match one of
 * several schemas, such as the members of a union.
 */
interface Plan {
  readonly isText: boolean;
  readonly keys: ReadonlyMap<string, { readonly camel: string; readonly value: () => Plan }>;
  readonly items: () => Plan;
  readonly values: () => Plan;
}

/** Unwraps schemas such as optional, nullable, default, refinement and union, and returns the inner schemas. */
function leaves(schemas: readonly z.core.$ZodType[], seen = new Set<z.core.$ZodType>()): z.core.$ZodType[] {
  return schemas.flatMap((schema) => {
    if (seen.has(schema)) return [];
    seen.add(schema);
    if (schema instanceof z.ZodUnion) return leaves(schema.options, seen);
    if (schema instanceof z.ZodIntersection) return leaves([schema.def.left, schema.def.right], seen);
    if (schema instanceof z.ZodPipe) return leaves([schema.def.in, schema.def.out], seen);
    if (schema instanceof z.ZodLazy) return leaves([schema.def.getter()], seen);
    const inner = (schema._zod.def as { innerType?: z.core.$ZodType }).innerType;
    return inner ? leaves([inner], seen) : [schema];
  });
}

const plans = new WeakMap<z.core.$ZodType, Plan>();

/**
 * Returns the {@link Plan} for values that match one of `schemas`. The plan for a single schema is created only once.
 */
function planOf(schemas: readonly z.core.$ZodType[]): Plan {
  const only = schemas.length === 1 ? schemas[0] : undefined;
  const known = only && plans.get(only);
  if (known) return known;
  const plan = makePlan(leaves(schemas));
  if (only) plans.set(only, plan);
  return plan;
}

function lazily(schemas: readonly z.core.$ZodType[]): () => Plan {
  let plan: Plan | undefined;
  return () => {
    plan ??= planOf(schemas);
    return plan;
  };
}

function makePlan(schemas: readonly z.core.$ZodType[]): Plan {
  const children = new Map<string, z.core.$ZodType[]>();
  const items: z.core.$ZodType[] = [];
  const values: z.core.$ZodType[] = [];
  for (const schema of schemas) {
    if (schema instanceof z.ZodObject) {
      for (const [key, child] of Object.entries(schema.shape as Record<string, z.core.$ZodType>)) {
        children.set(key, [...(children.get(key) ?? []), child]);
      }
      if (schema.def.catchall) values.push(schema.def.catchall);
    } else if (schema instanceof z.ZodRecord) {
      values.push(schema.valueType);
    } else if (schema instanceof z.ZodArray) {
      items.push(schema.element);
    } else if (schema instanceof z.ZodTuple) {
      items.push(...schema.def.items, ...(schema.def.rest ? [schema.def.rest] : []));
    }
  }
  const keys = new Map<string, { camel: string; value: () => Plan }>();
  const taken = new Map<string, string>();
  for (const [wire, childSchemas] of children) {
    const camel = camelKey(wire);
    const other = taken.get(camel);
    if (other !== undefined) {
      throw new Error(
        `contract: keys "${other}" and "${wire}" of one object are both "${camel}" in camelCase`,
      );
    }
    taken.set(camel, wire);
    keys.set(wire, { camel, value: lazily(childSchemas) });
  }
  const isText = schemas.length > 0 && schemas.every((schema) => schema._zod.def.type === "string");
  return { isText, keys, items: lazily(items), values: lazily(values) };
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function convert(plan: Plan, value: unknown, direction: "toWire" | "fromWire"): unknown {
  if (Array.isArray(value)) {
    const items = plan.items();
    return value.map((item) => convert(items, item, direction));
  }
  if (!isPlainObject(value)) return value;
  // Servers newer than 0.19 send a tag as an object with a name. The client returns only the name.
  if (direction === "fromWire" && plan.isText && typeof value.name === "string") return value.name;
  // Unknown keys come first in the result. If a known key and an unknown key have the same spelling after the
  // conversion, the known key replaces the unknown key.
  const unknown: [string, unknown][] = [];
  const known: [string, unknown][] = [];
  const rest = { ...value };
  for (const [wire, { camel, value: child }] of plan.keys) {
    const [from, to] = direction === "toWire" ? [camel, wire] : [wire, camel];
    if (Object.hasOwn(rest, from)) {
      known.push([to, convert(child(), rest[from], direction)]);
      delete rest[from];
    }
  }
  for (const [key, item] of Object.entries(rest)) {
    unknown.push([key, convert(plan.values(), item, direction)]);
  }
  return Object.fromEntries([...unknown, ...known]);
}

/**
 * Converts the keys that `schema` defines to their spelling in the wire format. All other keys, including the keys of
 * records, do not change. The function removes no key and checks no value.
 */
export function toWire(schema: z.core.$ZodType, value: unknown): unknown {
  return convert(planOf([schema]), value, "toWire");
}

/**
 * Converts a value from a server: the keys that `schema` defines become camelCase. The function is the inverse of
 * {@link toWire}. If the schema expects a string and the value is an object, the result is the `name` of the object.
 */
export function fromWire(schema: z.core.$ZodType, value: unknown): unknown {
  return convert(planOf([schema]), value, "fromWire");
}

const keysOfSchemas = new WeakMap<z.core.$ZodType, readonly string[]>();

/**
 * Returns the required keys of a schema that accepts exactly one type of object. Returns an empty list for all other
 * schemas.
 */
export function requiredKeys(schema: z.core.$ZodType): readonly string[] {
  let keys = keysOfSchemas.get(schema);
  if (keys === undefined) {
    const [only, ...others] = leaves([schema]);
    const shape = only instanceof z.ZodObject && others.length === 0 ? only.shape : {};
    keys = Object.entries(shape as Record<string, z.ZodType>).flatMap(([key, value]) =>
      value.safeParse(undefined).success ? [] : [key],
    );
    keysOfSchemas.set(schema, keys);
  }
  return keys;
}

/** Returns the JSON type that a schema accepts: `object` or `array`. Returns `any` for all other schemas. */
export function jsonKind(schema: z.core.$ZodType): "object" | "array" | "any" {
  const kinds = new Set(
    leaves([schema]).map((leaf) =>
      leaf instanceof z.ZodObject || leaf instanceof z.ZodRecord
        ? "object"
        : leaf instanceof z.ZodArray || leaf instanceof z.ZodTuple
          ? "array"
          : "any",
    ),
  );
  const [kind] = kinds;
  return kinds.size === 1 && kind ? kind : "any";
}
