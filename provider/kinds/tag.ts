import { definitions, definitionsByName } from "../resources/index.ts";
import { idWithin } from "../resources/values.ts";
import { changeDevice, deviceState, devicesOf } from "./device.ts";
import type { Draft } from "./draft.ts";
import type { Kind } from "./kind.ts";
import { knownInputs, outputOf, type PlannedStep } from "./plannedStep.ts";

const definition = definitionsByName.Tag;

/** The name of a tag. The resource neither creates nor deletes an object, but its update renames the tag everywhere. */
export const tag: Kind = {
  definition,
  keyOf: idWithin,
  reading: undefined,
  parts: undefined,
  watched: undefined,
  operations: { create: [], update: ["renameTag"], delete: [] },
  plan: {
    stage: "names",
    keyOf: (before) => outputOf(before, "name"),
    create: () => undefined,
    update: () => undefined,
    remove: () => undefined,
    together: renameTags,
  },
  decides: undefined,
  role: undefined,
  changes: undefined,
  linted: undefined,
  imported: undefined,
};

/**
 * Renames tags on every device, key, rule and access policy. All renames are applied at once, since one tag may take the
 * old name of another tag.
 */
function renameTags(draft: Draft, planned: readonly PlannedStep[]): void {
  const names = new Map<string, string>();
  for (const one of planned) {
    if (one.before && one.step.op === "update")
      names.set(outputOf(one.before, "name"), String(knownInputs(one).name));
  }
  if (names.size === 0) return;
  const renamed = (tags: readonly string[]) => tags.map((name) => names.get(name) ?? name);
  for (const { uid, tags } of devicesOf(draft).map(deviceState))
    changeDevice(draft, uid, { tags: renamed(tags) });
  for (const filtered of definitions.filter(({ inputs }) => inputs.filter)) {
    for (const [key, { state }] of draft.of(filtered) ?? []) {
      const { tags, ...filter } = state.filter as { readonly tags?: readonly string[] };
      if (tags) draft.put(filtered, key, { ...state, filter: { ...filter, tags: renamed(tags) } });
    }
  }
}
