import { readFileSync } from "node:fs";
import { Ajv } from "ajv";

const FOLDER = new URL("../../provider/schemas/", import.meta.url);

/** Validates printed JSON against a schema. Returns each error as its path and its message. */
export function schemaFaults(name: string, printed: unknown): string[] {
  const schema = JSON.parse(readFileSync(new URL(`${name}.schema.json`, FOLDER), "utf8"));
  const ajv = new Ajv({ allErrors: true, strict: true, allowUnionTypes: true });
  if (ajv.validate(schema, printed)) return [];
  return (ajv.errors ?? []).map(({ instancePath, message, params }) =>
    [instancePath, message, params.additionalProperty].filter(Boolean).join(" "),
  );
}
