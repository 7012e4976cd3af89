import { issueText } from "@gatehouse-access/sdk/contract";
import type { FieldPath } from "@gatehouse-access/sdk/errors";
import type { z } from "zod";
import type { Failure, ResourceDefinition } from "../model/definition.ts";
import type { InputField } from "../model/fields.ts";
import { canonicalInputs, hasUnknown } from "../model/values.ts";
import { ResourceError, said } from "../resourceError.ts";
import type { Values } from "../values.ts";

/** The inputs in canonical form. If there are failures, the inputs as the program set them. */
export interface Checked {
  readonly inputs: Record<string, unknown>;
  readonly failures: readonly ResourceError[];
}

/**
 * Checks a program's inputs without sending a request. So a preview rejects inputs that the service would reject.
 * Unknown values are checked after they become known.
 */
export function check(definition: ResourceDefinition, given: Values): Checked {
  const failures = [...unknownNames(definition, given)];
  for (const [name, field] of Object.entries(definition.inputs)) {
    failures.push(...checkField(name, field, given[name]));
  }
  // Only valid inputs can be converted to their canonical form. Invalid inputs are returned unchanged, but without
  // undefined values, because no engine accepts undefined values.
  const inputs = failures.length > 0 ? defined(given) : canonicalInputs(definition.inputs, given);
  if (failures.length === 0 && !hasUnknown(inputs)) failures.push(...(definition.rules?.(inputs) ?? []));
  const { name } = definition;
  return {
    inputs,
    failures: failures.map((failure) => new ResourceError(name, failure)),
  };
}

const defined = (values: Values) =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));

function unknownNames(definition: ResourceDefinition, given: Values): Failure[] {
  const allowed = Object.keys(definition.inputs);
  return Object.keys(given)
    .filter((name) => !allowed.includes(name) && given[name] !== undefined)
    .map((name) => ({
      code: "unknown_input",
      field: [name],
      detail: said`is not an input of this resource`,
      remedy: said`valid inputs: ${allowed.join(", ")}`,
    }));
}

function checkField(name: string, field: InputField, value: unknown): Failure[] {
  const missing = value === undefined || value === null || (value === "" && !field.required);
  if (missing) {
    const detail = said`is required: ${field.description}`;
    return field.required ? [{ code: "missing_input", field: [name], detail }] : [];
  }
  if (hasUnknown(value)) return [];
  const result = field.schema.safeParse(value, { error: issueText });
  return result.success ? [] : failuresOf(name, field, value, result.error.issues);
}

/** Returns the failures of an input. All invalid strings in a list are reported as one failure. */
function failuresOf(
  name: string,
  field: InputField,
  value: unknown,
  issues: readonly z.core.$ZodIssue[],
): Failure[] {
  const itemAt = (path: readonly PropertyKey[]) => {
    const item = path.reduce<unknown>((inside, step) => Object(inside)[step], value);
    return typeof path.at(-1) === "number" && typeof item === "string" && !field.secret ? item : undefined;
  };
  const listOf = ({ path }: z.core.$ZodIssue) => JSON.stringify(path.slice(0, -1));
  const isItem = (issue: z.core.$ZodIssue) => itemAt(issue.path) !== undefined;
  const lists = Map.groupBy(issues.filter(isItem), listOf);
  const ofLists = [...lists.values()].map((invalid): Failure => {
    const items = invalid.map(({ path, message }) => `${quoted(itemAt(path))} ${message}`);
    const list = fieldIn(name, invalid[0]?.path.slice(0, -1) ?? []);
    const count = items.length === 1 ? "an invalid item" : "invalid items";
    return { code: "invalid_input", field: list, detail: said`has ${count}: ${items.join("; ")}` };
  });
  return [
    ...issues.filter((issue) => !isItem(issue)).map((issue) => toFailure(name, field, issue)),
    ...ofLists,
  ];
}

function toFailure(name: string, { remedy: text }: InputField, issue: z.core.$ZodIssue): Failure {
  const fault = { field: fieldIn(name, issue.path), detail: [issue.message] };
  if (issue.code !== "custom" || issue.params?.isPrivateKey !== true)
    return { ...fault, code: "invalid_input", ...(text !== undefined && { remedy: [{ own: text }] }) };
  const remedy = said`set it to the content of the file that ends in .pub. If others can read the program, replace the key pair`;
  return { ...fault, code: "private_key", remedy };
}

/** Maximum length of a string that an error quotes. */
const QUOTED = 60;

const quoted = (text = ""): string =>
  JSON.stringify(text.length > QUOTED ? `${text.slice(0, QUOTED)}…` : text);

const fieldIn = (name: string, path: readonly PropertyKey[]): FieldPath => [
  name,
  ...path.map((step) => (typeof step === "symbol" ? String(step) : step)),
];
