/** Something that the embedded engine does otherwise than the Pulumi CLI, on purpose. */
interface EngineDifference {
  /** Stable name. */
  readonly id: string;
  readonly text: string;
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
] as const satisfies readonly EngineDifference[];

/** The names of these differences. */
export type EngineDifferenceId = (typeof ENGINE_DIFFERENCES)[number]["id"];
