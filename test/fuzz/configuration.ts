import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { World } from "./world.ts";

/** What requests are sent with: nothing, an owner's token, or the API key of an administrator. */
export const CREDENTIALS = ["none", "owner", "administrator-key"] as const;
export type CredentialKind = (typeof CREDENTIALS)[number];

/** Name of the environment variable that holds the credential: process arguments are no place for secrets. */
export const SECRET = "GATEHOUSE_FUZZ_SECRET";

const HEADERS: Readonly<Record<CredentialKind, string>> = {
  none: "",
  owner: `headers = { Authorization = "Bearer \${${SECRET}}" }`,
  "administrator-key": `headers = { X-API-KEY = "\${${SECRET}}" }`,
};

/** The secret that a kind of credential needs. */
export function secretOf(kind: CredentialKind, world: World): string {
  return { none: "", owner: world.ownerToken, "administrator-key": world.administratorKey }[kind];
}

/** Writes the configuration of a run into a folder, and gives its path. */
export function configure(folder: string, kind: CredentialKind, world: World): string {
  const dictionaries = Object.entries(world.dictionaries).map(
    // An array of JSON strings is one of TOML too.
    ([name, values]) => `[dictionaries.${name}]\nvalues = ${JSON.stringify(values)}\n`,
  );
  const rest = readFileSync(new URL("./fuzz.toml", import.meta.url), "utf8");
  const path = join(folder, "schemathesis.toml");
  writeFileSync(path, [HEADERS[kind], ...dictionaries, rest].join("\n"));
  return path;
}
