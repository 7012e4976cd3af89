import { isDeepStrictEqual } from "node:util";
import { EngineError } from "../../engine/index.ts";
import { firstOf, printable, valueJson } from "../../words.ts";
import type { ReviewedContent, ReviewedFields, ReviewedObject, ReviewedStep } from "./planFile.ts";

/** A difference between the reviewed plan and the current plan. */
export interface PlanDifference {
  readonly in: "program" | "state" | "service";
  /** Title of the object: `PublicKey "ana"`. */
  readonly object: string;
  /** Name of the field. Undefined if the object was added or removed, or if its operation in the plan is different. */
  readonly field?: string;
  readonly message: string;
}

/**
 * Compares the reviewed plan with the current plan, field by field. `differences` block an apply. `notes` report added
 * and removed devices, which do not block an apply, since devices enroll without a plan.
 */
export function planDifferences(reviewed: ReviewedContent, now: ReviewedContent) {
  const differences: PlanDifference[] = [];
  const notes: string[] = [];
  for (const [urn, [was, is]] of both(reviewed.steps, now.steps))
    differences.push(...stepDifferences(was, is, urn));
  for (const [tenant, [was, is]] of both(reviewed.namespaces, now.namespaces)) {
    if (!was || !is) {
      const message = `the namespace ${(was ?? is)?.name ?? tenant} ${was ? "can no longer be read" : "was not reviewed"}`;
      differences.push({ in: "service", object: tenant, message });
      continue;
    }
    const unread = [...new Set([...was.unread, ...is.unread])];
    if (!isDeepStrictEqual(was.unread, is.unread)) {
      const message = `the permission to read ${unread.join(" and ")} of ${is.name} has changed since the review`;
      differences.push({ in: "service", object: tenant, message });
    } else differences.push(...objectDifferences(was.objects, is.objects));
    for (const [, [old, now]] of both(was.devices, is.devices))
      if (old && now) differences.push(...fieldDifferences("service", now.title, old.fields, now.fields));
    notes.push(...movements(was.devices, is.devices));
  }
  return { differences, notes };
}

function both<T>(
  left: Readonly<Record<string, T>>,
  right: Readonly<Record<string, T>>,
): [key: string, values: [T | undefined, T | undefined]][] {
  const [was, is] = [new Map(Object.entries(left)), new Map(Object.entries(right))];
  return [...new Set([...was.keys(), ...is.keys()])].map((key) => [key, [was.get(key), is.get(key)]]);
}

function stepDifferences(
  was: ReviewedStep | undefined,
  is: ReviewedStep | undefined,
  urn: string,
): PlanDifference[] {
  const inProgram = (object: string, what: string): PlanDifference[] => [
    { in: "program", object, message: `${object} ${what}` },
  ];
  if (!was || !is) {
    const object = (was ?? is)?.title ?? urn;
    return inProgram(
      object,
      was ? "is no longer in the program or the state" : "was not in the reviewed plan",
    );
  }
  const { title } = is;
  if (was.declared && !is.declared) return inProgram(title, "is no longer in the program");
  if (!was.declared && is.declared) return inProgram(title, "was not in the program");
  const fields = [
    ...fieldDifferences("program", title, was.declared ?? {}, is.declared ?? {}),
    ...fieldDifferences("state", title, was.found ?? {}, is.found ?? {}),
    ...fieldDifferences("service", `${title}, matched object`, was.about, is.about),
  ];
  if (fields.length > 0 || was.op === is.op) return fields;
  const message = `${title}: the reviewed plan has ${was.op}, and the current plan has ${is.op}`;
  return [{ in: "state", object: title, message }];
}

function objectDifferences(
  old: Readonly<Record<string, ReviewedObject>>,
  now: Readonly<Record<string, ReviewedObject>>,
): PlanDifference[] {
  return both(old, now).flatMap(([key, [was, is]]): PlanDifference[] => {
    if (was && is) return fieldDifferences("service", is.title, was.fields, is.fields);
    const object = (was ?? is)?.title ?? key;
    const message = `${object} ${was ? "no longer exists on the service" : "is new on the service"}`;
    return [{ in: "service", object, message }];
  });
}

const PLACES = { program: "in the program", state: "in the state", service: "on the service" };

function fieldDifferences(
  place: PlanDifference["in"],
  object: string,
  old: ReviewedFields,
  now: ReviewedFields,
): PlanDifference[] {
  return both(old, now)
    .filter(([, [was, is]]) => !isDeepStrictEqual(was, is))
    .map(([field, [was, is]]) => ({
      in: place,
      object,
      field,
      message: `${object}: ${field} was ${boundedValue(was)} and is now ${boundedValue(is)} ${PLACES[place]}`,
    }));
}

const DEVICES_MAX = 5;

const VALUE_MAX = 120;

function boundedValue(value: unknown): string {
  if (value === undefined) return "not set";
  const text = valueJson(value);
  return text.length > VALUE_MAX ? `${text.slice(0, VALUE_MAX).toWellFormed()}…` : text;
}

function movements(
  old: Readonly<Record<string, ReviewedObject>>,
  now: Readonly<Record<string, ReviewedObject>>,
): string[] {
  const of = (here: typeof old, there: typeof old) =>
    Object.entries(here).flatMap(([uid, { title }]) => (Object.hasOwn(there, uid) ? [] : [title]));
  const sentence = (titles: readonly string[], what: string) =>
    titles.length === 0 ? [] : [`${what} since the review: ${firstOf(titles, DEVICES_MAX)}`];
  return [...sentence(of(now, old), "added"), ...sentence(of(old, now), "removed")];
}

/** Maximum number of differences that the error message lists. */
const NAMED_MAX = 20;

/** Thrown if the current plan of `up --plan` differs from the reviewed plan. Nothing was changed. */
export class OutdatedPlanError extends EngineError {
  readonly differences: readonly PlanDifference[];

  constructor(differences: readonly PlanDifference[]) {
    const more = differences.length - NAMED_MAX;
    super(
      "plan_outdated",
      [
        "The current plan differs from the reviewed plan. Nothing was changed. Review the plan again.",
        ...differences.slice(0, NAMED_MAX).map(({ message }) => `  ${printable(message)}`),
        ...(more > 0 ? [`  and ${more} more; --json lists all`] : []),
      ].join("\n"),
    );
    this.differences = differences;
  }
}
