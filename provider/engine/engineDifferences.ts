import type { UnsupportedUse } from "./errors.ts";

type UnsupportedFeature = Omit<UnsupportedUse, "resource">;

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

export type UnsupportedId = (typeof UNSUPPORTED)[number]["id"];

/** A use of such a feature, for an UnsupportedError. @param resource the resource or file that uses it */
export function unsupportedUse(id: UnsupportedId, resource: string): UnsupportedUse {
  const feature = UNSUPPORTED.find((entry) => entry.id === id) as UnsupportedFeature;
  return { ...feature, resource };
}

/** In what both engines differ on purpose. The reference is generated from it, and the comparison test refers to it. */
export const ENGINE_DIFFERENCES = [
  {
    id: "replace-on-changes",
    text:
      "`replaceOnChanges` works for dynamic resources. The CLI looks for the changed properties in a list that " +
      "dynamic providers never send, so it updates in place.",
  },
  {
    id: "deleted-once",
    text:
      "A run that stopped after it had deleted a dependent for a deletion before replacement does not delete that " +
      "dependent again; the CLI does, which a provider that minds a missing object fails on.",
  },
  {
    id: "taken-along",
    text:
      "A resource that is no target, but is deleted because a target is deleted before its replacement, is made " +
      "again as the program says it; the CLI makes it with its old inputs, such as the id of the object that is gone.",
  },
  {
    id: "excluded-dependency",
    text:
      "A new resource that depends on a new one which is left out by `--exclude` is refused, as it is with " +
      "`--target`; the CLI makes it, and its state then refers to nothing.",
  },
  {
    id: "unknown-outputs",
    text:
      "Outputs that come from a new resource which a run leaves out are not written; the CLI writes its placeholder " +
      "for unknown values into the state.",
  },
  {
    id: "import-agreement",
    text: "An import whose object differs from the program fails; the CLI (of other providers) may update it.",
  },
  {
    id: "pending-creations",
    text:
      "A creation that was in flight when a run was killed is forgotten once the resource is made; the CLI keeps it " +
      "until `refresh --clear-pending-creates`.",
  },
  {
    id: "pending-operations",
    text:
      "What else was in flight is read by `up` before it plans anything; the CLI's `up` forgets it, and its `refresh` " +
      "reads it.",
  },
] as const satisfies readonly { readonly id: string; readonly text: string }[];

export type EngineDifferenceId = (typeof ENGINE_DIFFERENCES)[number]["id"];
