import type { UnsupportedUse } from "./errors.ts";

/** A feature of Pulumi that the embedded engine does not have. */
export interface UnsupportedFeature {
  /** Stable name. */
  readonly id: string;
  readonly feature: string;
  /** What to do instead. */
  readonly hint: string;
}

const CLI = "Use the Pulumi CLI (--engine cli) for this program.";

/** Everything that the embedded engine refuses, before it touches anything. The reference is generated from it. */
export const UNSUPPORTED = [
  { id: "runtime", feature: "programs in languages other than Node.js", hint: CLI },
  { id: "backend", feature: "state backends other than file://", hint: CLI },
  {
    id: "secrets-provider",
    feature: "secrets providers other than a passphrase",
    hint: `${CLI} Or: pulumi stack change-secrets-provider passphrase.`,
  },
  { id: "compressed-state", feature: "gzip- or zstd-compressed state files", hint: CLI },
  { id: "legacy-layout", feature: "state folders without projects (before Pulumi 3.61)", hint: CLI },
  { id: "environment", feature: "Pulumi ESC environments in the stack's configuration", hint: CLI },
  {
    id: "package",
    feature: "resources of plugins (Gatehouse has the same ones as dynamic resources)",
    hint: CLI,
  },
  { id: "explicit-provider", feature: "explicit providers (the options provider and providers)", hint: CLI },
  { id: "remote-component", feature: "remote (multi-language) components", hint: CLI },
  { id: "parameterized-package", feature: "parameterized packages", hint: CLI },
  { id: "read-resource", feature: "reading a resource that is not managed (Resource.get)", hint: CLI },
  {
    id: "stack-reference",
    feature: "StackReference",
    hint: "Pass the value by configuration, or use the CLI.",
  },
  { id: "invoke", feature: "functions of providers (invoke)", hint: CLI },
  { id: "call", feature: "methods of remote components (call)", hint: CLI },
  {
    id: "transforms",
    feature: "transforms",
    hint: "Use transformations, which run in the program, or the CLI.",
  },
  { id: "hooks", feature: "resource hooks", hint: CLI },
  { id: "state-migrations", feature: "state migrations", hint: CLI },
  { id: "replacement-trigger", feature: "the option replacementTrigger", hint: "Use replaceOnChanges." },
  { id: "replace-with", feature: "the option replaceWith", hint: "Use deletedWith or replaceOnChanges." },
  { id: "nested-paths", feature: "ignoreChanges and replaceOnChanges deeper than one property", hint: CLI },
  { id: "assets", feature: "assets and archives", hint: "Read the file in the program and pass its text." },
  { id: "env-var-mappings", feature: "the option envVarMappings", hint: CLI },
  { id: "external-state", feature: "external resources (made by Resource.get) in the state", hint: CLI },
  { id: "views", feature: "view resources in the state", hint: CLI },
] as const satisfies readonly UnsupportedFeature[];

/** The names of these features. */
export type UnsupportedId = (typeof UNSUPPORTED)[number]["id"];

/** A use of such a feature, for an UnsupportedError. @param resource the resource or file that uses it */
export function unsupportedUse(id: UnsupportedId, resource: string): UnsupportedUse {
  const feature = UNSUPPORTED.find((entry) => entry.id === id) as UnsupportedFeature;
  return { ...feature, resource };
}
