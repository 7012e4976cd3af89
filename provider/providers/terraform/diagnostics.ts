import { printedError, RequestError, withCode } from "@gatehouse-access/sdk/errors";
import type { Notice } from "../../lifecycle/lifecycle.ts";
import { ResourceError } from "../../resourceError.ts";
import { type ResourceDefinition, UnfinishedError } from "../../resources/definition.ts";
import { secretName, terraformName, terraformTerms } from "../../terraform/types.ts";
import { masked } from "../instanceSettings.ts";

const [ERROR, WARNING] = [1, 2];

/** A message of the provider to whoever runs Terraform. */
export interface Diagnostic {
  readonly severity: number;
  readonly summary: string;
  readonly detail: string;
  readonly attribute?: AttributePath | undefined;
}

/** Where a value is in a configuration. */
export interface AttributePath {
  readonly steps: readonly { readonly attributeName: string }[];
}

/** Where attributes are, by the names in them from the outermost on. */
export const attributePath = (...names: readonly string[]): AttributePath => ({
  steps: names.map((attributeName) => ({ attributeName })),
});

/** An error about one attribute, or about none. */
export const errorAt = (names: readonly string[], summary: string, detail: string): Diagnostic => ({
  severity: ERROR,
  summary,
  detail,
  ...(names.length > 0 && { attribute: attributePath(...names) }),
});

/** A warning about nothing in particular. */
export const warning = (summary: string, detail: string): Diagnostic => ({
  severity: WARNING,
  summary,
  detail,
});

/** What is wrong with the inputs of a resource, as Terraform shows it: at the attribute, in its names. */
export function failureDiagnostic(definition: ResourceDefinition, failure: ResourceError): Diagnostic {
  const { path, name, detail } = written(definition, failure);
  return errorAt(path, `Invalid ${name || definition.name}`, withCode(detail, failure));
}

/**
 * A failed step of a resource, as Terraform shows it.
 * @param what the step, as in `could not be made`
 * @param secrets texts that it must not show, the longest first
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
    return errorAt(path, summary, masked(withCode(detail, cause), secrets));
  }
  return errorAt(atInput(definition, cause), summary, masked(printedError(cause), secrets));
}

/** The attribute that the service rejects, where its answer has exactly one field and the resource an input of its name. */
function atInput({ inputs }: ResourceDefinition, error: unknown): string[] {
  const [name, ...inside] = error instanceof RequestError ? (error.field ?? []) : [];
  const known = Object.keys(inputs).map(terraformName);
  return inside.length === 0 && known.includes(String(name)) ? [String(name)] : [];
}

/** What a step of a resource tells whoever runs Terraform, as it shows it. */
export const noticeDiagnostic = ({ name }: Pick<ResourceDefinition, "name">, { text }: Notice): Diagnostic =>
  warning(terraformTitle(name), text);

/** The attribute that an error is about, and the error's text in the words of Terraform. */
function written({ inputs, outputs }: ResourceDefinition, error: ResourceError) {
  const text = error.textIn(terraformTerms);
  const [first = "", ...inside] = error.field ?? [];
  const input = String(first);
  // Lists are sets in Terraform, and the items of a set have no path.
  const member = inside.slice(0, 1).filter((step) => typeof step === "string");
  const isSecret = outputs[input]?.choice !== undefined;
  // A secret has a name, but no path: Terraform would show the line, in which the secret may stand.
  const path = input in inputs && !isSecret ? [input, ...member].map(terraformName) : [];
  const name = isSecret ? secretName(input) : path.join(".");
  return { path, name, detail: name === "" ? text : `${name}: ${text}` };
}

const terraformTitle = (name: string): string =>
  name.replaceAll(/(?!^)[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
