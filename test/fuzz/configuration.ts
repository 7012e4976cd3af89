import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { FuzzedService } from "./objects.ts";

/** Kinds of credentials that requests use: none, an owner's token, or an administrator's API key. */
export const CREDENTIALS = ["none", "owner", "administrator-key"] as const;
export type CredentialKind = (typeof CREDENTIALS)[number];

/** Name of the environment variable with the credential. Process arguments must not contain secrets. */
export const SECRET = "GATEHOUSE_FUZZ_SECRET";

const HEADERS: Readonly<Record<CredentialKind, string>> = {
  none: "",
  owner: `headers = { Authorization = "Bearer \${${SECRET}}" }`,
  "administrator-key": `headers = { X-API-KEY = "\${${SECRET}}" }`,
};

/** Returns the secret for a kind of credential. */
export function secretOf(kind: CredentialKind, fuzzed: FuzzedService): string {
  return { none: "", owner: fuzzed.ownerToken, "administrator-key": fuzzed.administratorKey }[kind];
}

/** Writes the configuration of a run into a folder, and returns its path. */
export function configure(folder: string, kind: CredentialKind, fuzzed: FuzzedService): string {
  const dictionaries = Object.entries(fuzzed.dictionaries).map(
    // An array of JSON strings is also a valid TOML array.
    ([name, values]) => `[dictionaries.${name}]\nvalues = ${JSON.stringify(values)}\n`,
  );
  const rest = readFileSync(new URL("./fuzz.toml", import.meta.url), "utf8");
  const path = join(folder, "schemathesis.toml");
  writeFileSync(path, [HEADERS[kind], ...dictionaries, rest].join("\n"));
  return path;
}
