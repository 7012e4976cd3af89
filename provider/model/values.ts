import { isDeepStrictEqual } from "node:util";
import { UNKNOWN } from "../engineMarks.ts";
import type { InputField, Inputs } from "./fields.ts";

/** Returns true if the value, or any nested value, is unknown. */
export function hasUnknown(value: unknown): boolean {
  if (value === UNKNOWN) return true;
  if (Array.isArray(value)) return value.some(hasUnknown);
  return typeof value === "object" && value !== null && Object.values(value).some(hasUnknown);
}

const isOmitted = (value: unknown): boolean => value === undefined || value === null || value === "";

/**
 * Returns the canonical form of a value. All equal values of an input have the same canonical form. Null, an empty
 * string and an omitted value become the default. Lists become sorted sets, and objects lose their empty members. The
 * field's own function `canonical` is applied last. If a value has unknown parts, only the defaults of its members are
 * added.
 */
export function canonical(field: InputField, value: unknown): unknown {
  const filled = isOmitted(value) ? field.default : value;
  if (filled === undefined) return filled;
  if (hasUnknown(filled)) return withDefaults(filled, field.default);
  const plain = withoutEmpty(withDefaults(filled, field.default));
  return field.canonical ? field.canonical(plain) : plain;
}

/** Returns the object with defaults for its omitted properties. */
function withDefaults(value: unknown, fallback: unknown): unknown {
  if (!isObject(value) || !isObject(fallback)) return value;
  const given = Object.entries(value).filter(([, member]) => member !== undefined && member !== null);
  return { ...fallback, ...Object.fromEntries(given) };
}

function withoutEmpty(value: unknown): unknown {
  if (Array.isArray(value)) return [...new Set(value.map(withoutEmpty))].sort();
  if (!isObject(value)) return value;
  const kept = Object.entries(value).filter(([, member]) => member !== undefined && member !== null);
  return Object.fromEntries(kept.map(([key, member]) => [key, withoutEmpty(member)]));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns the canonical values of inputs. Omits inputs that have neither a value nor a default. */
export function canonicalInputs(
  inputs: Inputs,
  values: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const entries = Object.entries(inputs).map(
    ([name, field]) => [name, canonical(field, values[name])] as const,
  );
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}

/** Returns true if two values of an input have the same canonical form. */
export function sameValue(field: InputField, left: unknown, right: unknown): boolean {
  return left === right || isDeepStrictEqual(canonical(field, left), canonical(field, right));
}

/** Returns true if these input values declare an object with this state. Ignores the namespace. */
export const declares = (
  inputs: Inputs,
  state: Readonly<Record<string, unknown>>,
  values: Readonly<Record<string, unknown>>,
): boolean =>
  Object.entries(inputs).every(
    ([name, field]) => name === "tenant" || sameValue(field, state[name], values[name]),
  );

/**
 * Returns true if these input values declare an object with this state. Ignores the namespace and instructions to the
 * run.
 */
export const sameInputs = (
  inputs: Inputs,
  state: Readonly<Record<string, unknown>>,
  values: Readonly<Record<string, unknown>>,
): boolean => declares(fieldsOf(inputs), state, values);

const fieldsOf = (inputs: Inputs): Inputs =>
  Object.fromEntries(Object.entries(inputs).filter(([, { transient }]) => !transient));

/**
 * Returns the inputs with which a program declares an object in its current state. Omits the namespace, because the
 * stack's namespace is the default. Also omits instructions to a run and values that equal their defaults.
 */
export function declaringInputs(
  inputs: Inputs,
  state: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const entries = Object.entries(inputs)
    .filter(([name, field]) => name !== "tenant" && !field.transient)
    .flatMap(([name, field]) => {
      const value = beyondDefault(canonical(field, state[name]), field.default ?? field.initial);
      return value === undefined ? [] : [[name, value] as const];
    });
  return Object.fromEntries(entries);
}

/** Returns the part of a value that differs from its default, or undefined if the value equals its default. */
function beyondDefault(value: unknown, fallback: unknown): unknown {
  if (isDeepStrictEqual(value, fallback)) return undefined;
  if (!isObject(value) || !isObject(fallback)) return value;
  return Object.fromEntries(
    Object.entries(value).filter(([name, member]) => !isDeepStrictEqual(member, fallback[name])),
  );
}

/** Returns the part of an id after the namespace: the fingerprint of a key, the id of a rule, or `uid/tag`. */
export const idWithin = ({ id }: { readonly id: string }): string => id.slice(id.indexOf("/") + 1);
