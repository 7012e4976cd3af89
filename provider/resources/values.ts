import { isDeepStrictEqual } from "node:util";
import { UNKNOWN } from "../engineMarks.ts";
import type { InputField, Inputs } from "./definition.ts";

/** True when the value, or anything inside it, is not known yet. */
export function hasUnknown(value: unknown): boolean {
  if (value === UNKNOWN) return true;
  if (Array.isArray(value)) return value.some(hasUnknown);
  return typeof value === "object" && value !== null && Object.values(value).some(hasUnknown);
}

const isLeftOut = (value: unknown): boolean => value === undefined || value === null || value === "";

/**
 * The form that all equal values of an input have: null, "" and a missing value become the default, lists become sorted
 * sets, objects lose empty members, and the field's own rule comes last. What has anything unknown in it only gets
 * the defaults of its members.
 */
export function canonical(field: InputField, value: unknown): unknown {
  const filled = isLeftOut(value) ? field.default : value;
  if (filled === undefined) return filled;
  if (hasUnknown(filled)) return withDefaults(filled, field.default);
  const plain = withoutEmpty(withDefaults(filled, field.default));
  return field.canonical ? field.canonical(plain) : plain;
}

/** An object with the defaults of the members that it leaves out. */
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

/** The canonical values of inputs, without those that have no value and no default. */
export function canonicalInputs(
  inputs: Inputs,
  values: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const entries = Object.entries(inputs).map(
    ([name, field]) => [name, canonical(field, values[name])] as const,
  );
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}

/** True when two values of an input have the same canonical form. */
export function sameValue(field: InputField, left: unknown, right: unknown): boolean {
  return left === right || isDeepStrictEqual(canonical(field, left), canonical(field, right));
}

/**
 * The inputs by which a program declares an object as it is: without the namespace, which the stack has, without what a
 * run is told by them, and without defaults.
 */
export function declaringInputs(
  inputs: Inputs,
  state: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const entries = Object.entries(inputs)
    .filter(([name, field]) => name !== "tenant" && !field.transient)
    .flatMap(([name, field]) => {
      const value = beyondDefault(canonical(field, state[name]), field.default);
      return value === undefined ? [] : [[name, value] as const];
    });
  return Object.fromEntries(entries);
}

/** What of a value its default does not say already; undefined for nothing. */
function beyondDefault(value: unknown, fallback: unknown): unknown {
  if (isDeepStrictEqual(value, fallback)) return undefined;
  if (!isObject(value) || !isObject(fallback)) return value;
  return Object.fromEntries(
    Object.entries(value).filter(([name, member]) => !isDeepStrictEqual(member, fallback[name])),
  );
}

/** The part of an id after the namespace: a fingerprint, a rule's id, `uid/tag`. */
export const idWithin = ({ id }: { readonly id: string }): string => id.slice(id.indexOf("/") + 1);
