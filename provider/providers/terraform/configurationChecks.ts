import { canonical } from "../../resources/values.ts";
import type { Attribute } from "../../terraform/attributes.ts";
import type { Row } from "../../terraform/types.ts";
import { UNKNOWN } from "../../valueMarks.ts";
import { type Diagnostic, errorAt } from "./diagnostics.ts";

/** What is wrong with a configuration beside what the declarative model knows of, as far as it is known. */
export const ownErrors = (attributes: readonly Attribute[], config: Row): Diagnostic[] =>
  attributes.flatMap((attribute) => [...emptyText(attribute, config), ...wrongSecret(attribute, config)]);

/** An empty text would come back as what the service decides, which Terraform takes for a fault of the provider. */
function emptyText(attribute: Attribute, config: Row): Diagnostic[] {
  const { name } = attribute;
  if (attribute.role !== "input" || attribute.field.required || config[name] !== "") return [];
  if (canonical(attribute.field, "") === "") return [];
  return [invalid(name, "must not be empty; leave it out, or give null")];
}

function wrongSecret(attribute: Attribute, config: Row): Diagnostic[] {
  const { name } = attribute;
  const value = config[name] ?? UNKNOWN;
  if (attribute.role !== "secret" || value === UNKNOWN) return [];
  const { error } = attribute.field.choice?.safeParse(value) ?? {};
  // Without a place: Terraform would show the line, in which a secret may stand.
  return (error?.issues ?? []).map(({ message }) => ({
    ...invalid(name, `${message}; ${CHOOSE}`),
    attribute: undefined,
  }));
}

/** Terraform's own function is known at the apply alone, makes no UUID of a version, and shows nobody what it made. */
const CHOOSE =
  "make one by the command uuidgen, and give it by an ephemeral variable or from a secret store (uuid() of Terraform makes no UUID of a version)";

/** The error where a new object needs a secret, and the configuration has none. */
export const missingSecrets = (attributes: readonly Attribute[], config: Row): Diagnostic[] =>
  attributes
    .filter(({ role, name }) => role === "secret" && (config[name] ?? null) === null)
    .map(({ name, description }) => invalid(name, `is required here: ${description}`));

const invalid = (name: string, reason: string): Diagnostic =>
  errorAt([name], `Invalid ${name}`, `${name}: ${reason}`);
