import type { UnsupportedUse } from "./errors.ts";

type UnsupportedFeature = Omit<UnsupportedUse, "resource">;

const CLI = "Use the Pulumi CLI (--engine cli) for this program.";

/**
 * Features that the embedded engine rejects. The engine rejects them before it changes anything. The reference
 * documentation is generated from this list.
 */
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
    feature: "resources of plugins (Gatehouse has the same resources as dynamic resources)",
    hint: CLI,
  },
  { id: "explicit-provider", feature: "explicit providers (the options provider and providers)", hint: CLI },
  { id: "remote-component", feature: "remote (multi-language) components", hint: CLI },
  { id: "parameterized-package", feature: "parameterized packages", hint: CLI },
  { id: "read-resource", feature: "reading a resource that is not managed (Resource.get)", hint: CLI },
  {
    id: "stack-reference",
    feature: "StackReference",
    hint: "Pass the value in the configuration, or use the CLI.",
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
  { id: "external-state", feature: "external resources (from Resource.get) in the state", hint: CLI },
  { id: "views", feature: "view resources in the state", hint: CLI },
] as const satisfies readonly UnsupportedFeature[];

export type UnsupportedId = (typeof UNSUPPORTED)[number]["id"];

/**
 * Returns a description of the use of an unsupported feature.
 * @param resource the resource or file that uses the feature
 */
export function unsupportedUse(id: UnsupportedId, resource: string): UnsupportedUse {
  const feature = UNSUPPORTED.find((entry) => entry.id === id) as UnsupportedFeature;
  return { ...feature, resource };
}

/**
 * Intended differences between the engines. The reference documentation is generated from this list. The test that
 * compares the engines also uses this list.
 */
export const ENGINE_DIFFERENCES = [
  {
    id: "replace-on-changes",
    text:
      "`replaceOnChanges` works for dynamic resources. The CLI searches the changed properties in a list " +
      "that dynamic providers never send, so it updates the object in place.",
  },
  {
    id: "deleted-once",
    text:
      "If a run stops after it deletes a dependent resource of a replaced resource, the next run does not delete " +
      "the dependent resource again. The CLI deletes it again. This deletion fails if the provider rejects the " +
      "deletion of a missing object.",
  },
  {
    id: "taken-along",
    text:
      "If a target is deleted before its replacement, resources that depend on the target are also " +
      "deleted, even if they are not targets. This engine creates them again with the program's inputs. " +
      "The CLI uses the old inputs, such as the id of the deleted object.",
  },
  {
    id: "excluded-dependency",
    text:
      "A new resource that depends on a new resource in `--exclude` is rejected, as with `--target`. The " +
      "CLI creates the resource, and its state then has a dangling reference.",
  },
  {
    id: "unknown-outputs",
    text:
      "This engine does not write outputs that depend on an excluded new resource. The CLI writes a " +
      "placeholder for unknown values to the state.",
  },
  {
    id: "import-agreement",
    text: "An import fails if the object differs from the program. The CLI may update the object (for other providers).",
  },
  {
    id: "pending-creations",
    text:
      "This engine removes the pending creation of a killed run when a later run creates the resource. " +
      "The CLI keeps the pending creation until `refresh --clear-pending-creates`.",
  },
  {
    id: "pending-operations",
    text:
      "`up` reads the objects of other pending operations before it plans. The CLI's `up` discards these " +
      "operations, and its `refresh` reads the objects.",
  },
] as const satisfies readonly { readonly id: string; readonly text: string }[];

export type EngineDifferenceId = (typeof ENGINE_DIFFERENCES)[number]["id"];
