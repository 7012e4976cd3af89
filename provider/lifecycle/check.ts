import { issueText } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import { ResourceError, said } from "../resourceError.ts";
import type { Failure, InputField, ResourceDefinition } from "../resources/definition.ts";
import { canonicalInputs, hasUnknown } from "../resources/values.ts";

/** Canonical inputs; or inputs as they were given, and what is wrong with them. */
export interface Checked {
  readonly inputs: Record<string, unknown>;
  readonly failures: readonly ResourceError[];
}

/**
 * Checks a program's inputs without any request, so that a preview refuses what the service would refuse. Values that
 * are not known yet are checked once they are.
 */
export function check(definition: ResourceDefinition, given: Readonly<Record<string, unknown>>): Checked {
  const failures = [...unknownNames(definition, given)];
  for (const [name, field] of Object.entries(definition.inputs)) {
    failures.push(...checkField(name, field, given[name]));
  }
  // Only valid values have a canonical form. No engine takes undefined values.
  const inputs = failures.length > 0 ? defined(given) : canonicalInputs(definition.inputs, given);
  if (failures.length === 0 && !hasUnknown(inputs)) failures.push(...(definition.rules?.(inputs) ?? []));
  const { name } = definition;
  return {
    inputs,
    failures: failures.map((failure) => new ResourceError(name, failure)),
  };
}

const defined = (values: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));

function unknownNames(definition: ResourceDefinition, given: Readonly<Record<string, unknown>>): Failure[] {
  const allowed = Object.keys(definition.inputs);
  return Object.keys(given)
    .filter((name) => !allowed.includes(name) && given[name] !== undefined)
    .map((name) => ({
      code: "unknown_input",
      field: [name],
      detail: said`is not an input`,
      remedy: said`inputs are ${allowed.join(", ")}`,
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
  return result.success ? [] : result.error.issues.map((issue) => toFailure(name, issue));
}

function toFailure(name: string, { path, message }: z.core.$ZodIssue): Failure {
  const inside = path.map((step) => (typeof step === "symbol" ? String(step) : step));
  return { code: "invalid_input", field: [name, ...inside], detail: [message] };
}
