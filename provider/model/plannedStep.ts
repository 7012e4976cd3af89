import { canonicalTime, isTime } from "@gatehouse-access/sdk/times";
import type { ResourceValues, Step } from "../engine/index.ts";
import { holds, type Shown } from "../shownValue.ts";
import type { Values } from "../values.ts";
import { byText, firstOf } from "../words.ts";
import type { ResourceDefinition } from "./definition.ts";
import type { InputField } from "./fields.ts";
import { canonical } from "./values.ts";

/** A step of a plan in one namespace. A move to another namespace becomes two steps, one in each namespace. */
export interface PlannedStep {
  readonly step: Step;
  readonly definition: ResourceDefinition;
  /** Title in sentences: `PublicKey "ana"`. */
  readonly title: string;
  /**
   * The inputs and outputs of the resource before the step. Undefined if the resource has no object in the namespace
   * yet.
   */
  readonly before: ResourceValues | undefined;
  /**
   * The inputs and outputs of the resource after the step. Undefined if the resource will have no object in the
   * namespace.
   */
  readonly after: ResourceValues | undefined;
}

/** Returns true if a value is secret, or unknown before the apply. */
export const isHidden = (value: Shown | undefined): boolean => holds(value, "[unknown]", "[secret]");

/** Returns true if the step deletes or replaces the current object of the resource. */
export const losesObject = ({ op }: Step): boolean => op === "delete" || op === "replace";

/**
 * Returns true if the provider instance of a resource has its own credential. The permissions of that credential are
 * not known.
 */
export const hasOwnCredential = ({ before, after }: Pick<Step, "before" | "after">): boolean =>
  Object.values((after ?? before)?.provider ?? {}).some((value) => holds(value, "[secret]"));

/**
 * Thrown if the result of a planned step cannot be predicted. Reports show the message after the title of the resource.
 */
export class UnpredictableError extends Error {
  override readonly name = "UnpredictableError";
}

/**
 * Returns an error about values that are secret or unknown before the apply.
 * @param names the names of the values
 */
export function hiddenValues(names: readonly string[]): UnpredictableError {
  const verb = names.length === 1 ? "is" : "are";
  return new UnpredictableError(`its ${names.join(" and ")} ${verb} secret or unknown before the apply`);
}

/**
 * Returns the canonical inputs of a resource after a step. The result omits instructions to the run. It also omits
 * inputs that are secret, or unknown before the apply.
 * @throws UnpredictableError if a decisive input has an invalid value, or if any other input has a value of the wrong
 *   type
 */
export function knownInputs({ definition, after }: Pick<PlannedStep, "definition" | "after">): Values {
  const given = after?.inputs ?? {};
  const fields = Object.entries(definition.inputs).filter(
    ([name, { transient }]) => !transient && !isHidden(given[name]),
  );
  const entries = fields.map(([name, field]) => {
    const value = given[name];
    if (field.notDecisive === undefined && !isValid(field, value)) throw invalidInput(name);
    try {
      return [name, canonical(field, value)] as const;
    } catch {
      // The function `canonical` fails for a value of the wrong type.
      throw invalidInput(name);
    }
  });
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}

/** Returns an error about an input with an invalid value. */
export const invalidInput = (name: string) => new UnpredictableError(`its ${name} has an invalid value`);

/** Returns true if an input accepts the value. An empty string is treated as an omitted value. */
const isValid = ({ schema, required }: InputField, value: unknown): boolean =>
  value === undefined || value === null || value === "" ? !required : schema.safeParse(value).success;

/** Returns the strings in a value, without strings that are secret or unknown before the apply. */
export const knownTexts = (value: Shown | undefined): string[] =>
  [value].flat().filter((text): text is string => typeof text === "string" && !isHidden(text));

const TITLES_MAX = 5;

/** Formats the first few titles in sorted order, followed by the number of the omitted titles. */
export const firstTitles = (titles: readonly string[]): string =>
  firstOf([...new Set(titles)].sort(byText), TITLES_MAX);

/** Returns the value of a resource's output if the value is a known string. Otherwise, returns an empty string. */
export function outputOf({ outputs }: ResourceValues, name: string): string {
  const value = outputs[name];
  return typeof value === "string" && !isHidden(value) ? value : "";
}

/**
 * Returns the expiry time of the access that an object gives, in the form that states use. Returns an empty string if
 * the access does not expire.
 * @throws UnpredictableError if the time is not valid
 */
export function declaredEnd({ inputs: { expiresAt } }: ResourceValues): string {
  if (typeof expiresAt !== "string" || expiresAt === "") return "";
  if (!isTime(expiresAt)) throw new UnpredictableError("its expiresAt is not a valid time");
  return canonicalTime(expiresAt);
}

/** Returns the name that a resource declares, or the name of the resource if the declared name is not known yet. */
export const nameIn = ({ step, after }: PlannedStep): string => {
  const name = after?.inputs.name;
  return typeof name === "string" && name !== "" && !isHidden(name) ? name : step.name;
};
