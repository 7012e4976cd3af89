import { randomUUID } from "node:crypto";
import type { ResourceDefinition } from "../../../provider/model/definition.ts";
import type { FilledFleet } from "../../provider/support/filledFleet.ts";
import { sampleOf } from "../../provider/support/samples.ts";

type Values = Readonly<Record<string, unknown>>;

/** Converts `sourceIp` to `source_ip`. */
export const snake = (text: string): string =>
  text.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** Converts `PublicKey` to `gatehouse_public_key`. */
export const typeOf = ({ name }: Pick<ResourceDefinition, "name">): string => `gatehouse${snake(name)}`;

/** Converts inputs to a JSON configuration. Escapes texts, so that Terraform does not interpret them as templates. */
export function configurationOf(inputs: Values): Record<string, unknown> {
  const given = Object.entries(inputs).filter(([, value]) => value !== undefined);
  return Object.fromEntries(
    given.map(([name, value]) => [
      snake(name),
      name === "settings" ? members(value as Values) : literal(value),
    ]),
  );
}

const members = (values: Values) =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [snake(name), literal(value)]));

function literal(value: unknown): unknown {
  if (typeof value === "string") return value.replaceAll(/[$%](?=\{)/g, (mark) => mark + mark);
  if (Array.isArray(value)) return value.map(literal);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, literal(member)]));
}

/**
 * Returns a resource configuration that sets all inputs, and for each input a configuration in which this input is
 * changed.
 */
export function sampleConfiguration(definition: ResourceDefinition, fleet: FilledFleet) {
  const { base, changes } = sampleOf(definition);
  // Returns a new secret for each object, since two objects must not have the same secret.
  const secret = () => (definition.outputs.key?.choice ? { key_wo: randomUUID() } : {});
  const configured = { ...configurationOf(fleet.here(base)), ...secret() };
  return {
    base: configured,
    changes: new Map(
      [...changes].map(([name, value]) => {
        const changed = configurationOf(fleet.here({ [name]: value }));
        return [name, { ...configured, ...secret(), ...changed }];
      }),
    ),
  };
}
