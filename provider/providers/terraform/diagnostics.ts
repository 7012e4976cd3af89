import { RequestError, withCode } from "@gatehouse-access/sdk/errors";
import { type Notice, noticeText } from "../../lifecycle/lifecycle.ts";
import type { ResourceDefinition } from "../../model/definition.ts";
import { UnfinishedError } from "../../model/unfinishedError.ts";
import { ResourceError } from "../../resourceError.ts";
import { secretName, terraformName, terraformTerms } from "../../terraform/types.ts";
import { masked } from "../instanceSettings.ts";

const [ERROR, WARNING] = [1, 2];

/** A diagnostic: an error or warning that the provider sends to the Terraform user. */
export interface Diagnostic {
  readonly severity: number;
  readonly summary: string;
  readonly detail: string;
  readonly attribute?: AttributePath | undefined;
}

/** The location of a value in a configuration. */
interface AttributePath {
  readonly steps: readonly { readonly attributeName: string }[];
}

/**
 * Returns the path of an attribute.
 * @param names the names on the path, from the outermost to the innermost
 */
export const attributePath = (...names: readonly string[]): AttributePath => ({
  steps: names.map((attributeName) => ({ attributeName })),
});

/** Returns an error that refers to an attribute. If the path is empty, the error refers to no attribute. */
export const errorAt = (names: readonly string[], summary: string, detail: string): Diagnostic => ({
  severity: ERROR,
  summary,
  detail,
  ...(names.length > 0 && { attribute: attributePath(...names) }),
});

/** Returns a warning that refers to no attribute. */
export const warning = (summary: string, detail: string): Diagnostic => ({
  severity: WARNING,
  summary,
  detail,
});

/**
 * Converts a failed check of an input to a diagnostic that refers to the input's attribute. The diagnostic uses
 * Terraform's terms.
 */
export function failureDiagnostic(definition: ResourceDefinition, failure: ResourceError): Diagnostic {
  const { path, name, detail } = written(definition, failure);
  return errorAt(path, `Invalid ${name || definition.name}`, withCode(detail, failure));
}

/**
 * Converts the error of a failed operation on a resource to a diagnostic.
 * @param what the failure, such as `could not be created`, which follows the resource type in the summary
 * @param secrets the strings to mask, longest first
 */
export function errorDiagnostic(
  definition: ResourceDefinition,
  error: unknown,
  what: string,
  secrets: readonly string[] = [],
): Diagnostic {
  const cause = error instanceof UnfinishedError ? error.cause : error;
  const summary = `${terraformTitle(definition.name)} ${what}`;
  if (cause instanceof ResourceError) {
    const { path, detail } = written(definition, cause);
    return errorAt(path, summary, masked(cause, secrets, withCode(detail, cause)));
  }
  return errorAt(atInput(definition, cause), summary, masked(cause, secrets));
}

/**
 * Returns the path of the attribute that the service rejected. The path is empty if the response does not contain
 * exactly one field, or if the resource has no input with the field's name.
 */
function atInput({ inputs }: ResourceDefinition, error: unknown): string[] {
  const [name, ...inside] = error instanceof RequestError ? (error.field ?? []) : [];
  const known = Object.keys(inputs)
    .filter((input) => !inputs[input]?.secret)
    .map(terraformName);
  return inside.length === 0 && known.includes(String(name)) ? [String(name)] : [];
}

/** Converts a notice about a resource to a warning. */
export const noticeDiagnostic = ({ name }: Pick<ResourceDefinition, "name">, { text }: Notice): Diagnostic =>
  warning(terraformTitle(name), noticeText({ text }, terraformTerms));

/**
 * Returns the attribute path for a resource error, the name of the attribute, and the error message in Terraform's
 * terms.
 */
function written({ inputs, outputs }: ResourceDefinition, error: ResourceError) {
  const [first = "", ...inside] = error.field ?? [];
  const input = String(first);
  // The path ends before a list index. The Terraform schema of this provider contains sets instead of lists, and the
  // items of a set have no path.
  const member = inside.slice(0, 1).filter((step) => typeof step === "string");
  const isSecret = outputs[input]?.choice !== undefined || inputs[input]?.secret === true;
  // An error about a secret contains the name of the attribute, but no path. With a path, Terraform would print the
  // source line, which may contain the secret.
  const named = input in inputs && !isSecret ? [input, ...member].map(terraformName) : [];
  const path = error.code === "private_key" ? [] : named;
  const name = isSecret ? secretName(input) : named.join(".");
  return { path, name, detail: error.textIn(terraformTerms, name === "" ? [] : [name]) };
}

const terraformTitle = (name: string): string =>
  name.replaceAll(/(?!^)[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
