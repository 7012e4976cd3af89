import { isDeepStrictEqual } from "node:util";
import { EngineError } from "../../engine/index.ts";
import { firstOf, printable } from "../../words.ts";
import type { ReviewedContent, ReviewedFields, ReviewedObject, ReviewedStep } from "./planFile.ts";

export interface PlanDifference {
  readonly in: "program" | "state" | "service";
  /** `PublicKey "ana"`. */
  readonly object: string;
  /** Undefined if the object was added or removed, or the plan does something else with it. */
  readonly field?: string;
  readonly message: string;
}

/**
 * Compares the reviewed plan with the current one, field by field. `differences` block an apply. `notes` report devices that
 * were added or removed: devices enroll by themselves, so they block nothing.
 */
export function planDifferences(reviewed: ReviewedContent, now: ReviewedContent) {
  const differences: PlanDifference[] = [];
  const notes: string[] = [];
  for (const [urn, [was, is]] of both(reviewed.steps, now.steps))
    differences.push(...stepDifferences(was, is, urn));
  for (const [tenant, [was, is]] of both(reviewed.namespaces, now.namespaces)) {
    if (!was || !is) {
      const message = `the namespace ${(was ?? is)?.name ?? tenant} ${was ? "cannot be read any more" : "was not reviewed"}`;
      differences.push({ in: "service", object: tenant, message });
      continue;
    }
    const unread = [...new Set([...was.unread, ...is.unread])];
    if (!isDeepStrictEqual(was.unread, is.unread)) {
      const message = `${unread.join(" and ")} of ${is.name} could be read only once: at the review, or now`;
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
    return inProgram(object, was ? "is neither in the program nor in the state any more" : "was not there");
  }
  const { title } = is;
  if (was.declared && !is.declared) return inProgram(title, "is no longer in the program");
  if (!was.declared && is.declared) return inProgram(title, "was not in the program");
  const fields = [
    ...fieldDifferences("program", title, was.declared ?? {}, is.declared ?? {}),
    ...fieldDifferences("state", title, was.found ?? {}, is.found ?? {}),
    ...fieldDifferences("service", `${title}, what it is about`, was.about, is.about),
  ];
  if (fields.length > 0 || was.op === is.op) return fields;
  const message = `${title}: what was reviewed is ${was.op}, and it would be ${is.op} now`;
  return [{ in: "state", object: title, message }];
}

function objectDifferences(
  old: Readonly<Record<string, ReviewedObject>>,
  now: Readonly<Record<string, ReviewedObject>>,
): PlanDifference[] {
  return both(old, now).flatMap(([key, [was, is]]): PlanDifference[] => {
    if (was && is) return fieldDifferences("service", is.title, was.fields, is.fields);
    const object = (was ?? is)?.title ?? key;
    const message = `${object} ${was ? "is gone from the service" : "is new on the service"}`;
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
      ...{ in: place, object, field },
      message: `${object}: ${field} was ${textOf(was)}, and is ${textOf(is)} ${PLACES[place]}`,
    }));
}

const DEVICES_MAX = 5;

const VALUE_MAX = 120;

function textOf(value: unknown): string {
  if (value === undefined) return "not set";
  const text = JSON.stringify(value);
  return text.length > VALUE_MAX ? `${text.slice(0, VALUE_MAX).toWellFormed()}…` : text;
}

function movements(
  old: Readonly<Record<string, ReviewedObject>>,
  now: Readonly<Record<string, ReviewedObject>>,
): string[] {
  const of = (here: typeof old, there: typeof old) =>
    Object.entries(here).flatMap(([uid, { title }]) => (Object.hasOwn(there, uid) ? [] : [title]));
  const sentence = (titles: readonly string[], what: string) =>
    titles.length === 0 ? [] : [`${firstOf(titles, DEVICES_MAX)} ${what} since the review`];
  return [...sentence(of(now, old), "came"), ...sentence(of(old, now), "went")];
}

/** Maximum number of differences in the message. */
const NAMED_MAX = 20;

/** `up --plan` would not do what was reviewed. Nothing is changed. */
export class OutdatedPlanError extends EngineError {
  readonly differences: readonly PlanDifference[];

  constructor(differences: readonly PlanDifference[]) {
    const more = differences.length - NAMED_MAX;
    super(
      "plan_outdated",
      [
        "what was reviewed is not what would be done now. Nothing was changed; review it again.",
        ...differences.slice(0, NAMED_MAX).map(({ message }) => `  ${printable(message)}`),
        ...(more > 0 ? [`  and ${more} more; --json names them all`] : []),
      ].join("\n"),
    );
    this.differences = differences;
  }
}
