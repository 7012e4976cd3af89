import type { Failure, ResourceDefinition } from "../resources/definition.ts";
import { masked } from "../runtime/masked.ts";
import { terraformName } from "./types.ts";
import { terraformWords } from "./words.ts";

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
export function failureDiagnostic(definition: ResourceDefinition, { property, reason }: Failure): Diagnostic {
  const { path, detail } = placed(definition, reason, property);
  return errorAt(path, `Invalid ${path.join(".") || definition.name}`, detail);
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
  const reason = masked(error instanceof Error ? error.message : String(error), secrets);
  const { path, detail } = placed(definition, reason);
  return errorAt(path, `${terraformTitle(definition.name)} ${what}`, detail);
}

/** What a step of a resource tells whoever runs Terraform, as it shows it. */
export function toldDiagnostic(definition: ResourceDefinition, message: string): Diagnostic {
  // The name that it begins with is one that Terraform told nobody.
  const detail = terraformWords(definition, message.replace(/^\w+ "[^"]*": /, ""));
  return warning(terraformTitle(definition.name), detail);
}

/**
 * Which attribute a text is about, and the text in the words of Terraform.
 * @param named the input that it is about; left out where the text itself begins with it, or is about none
 */
function placed(
  definition: ResourceDefinition,
  reason: string,
  named?: string,
): { readonly path: readonly string[]; readonly detail: string } {
  const { name, inputs } = definition;
  const [prefix = "", property = named] =
    new RegExp(`^${name}(?:\\.([\\w.]+))?: `).exec(reason)?.slice(0, 2) ?? [];
  const [input = "", ...inside] = property?.split(".") ?? [];
  const text = terraformWords(definition, reason.slice(prefix.length));
  if (!(input in inputs)) return { path: [], detail: text };
  // A place within a list or map is none that Terraform could be told by a name.
  const path = [input, ...inside.filter((step) => !/^\d+$/.test(step)).slice(0, 1)].map(terraformName);
  return { path, detail: `${path.join(".")}: ${text}` };
}

const terraformTitle = (name: string): string =>
  name.replaceAll(/(?!^)[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
