import type { ResourceValues, Shown } from "../../engine/index.ts";
import { changeList } from "../../model/changes.ts";
import type { Draft } from "../../model/draft.ts";
import { type Kind, listedBy } from "../../model/kind.ts";
import type { HasObjects } from "../../model/namespaceObjects.ts";
import {
  hiddenValues,
  invalidInput,
  isHidden,
  outputOf,
  UnpredictableError,
} from "../../model/plannedStep.ts";
import type { Style } from "../../style.ts";
import { ownTypeName, urnType } from "../../urn.ts";
import { accessPolicy } from "../accessPolicy.ts";
import { definition as members } from "../member/resource.ts";
import {
  definition,
  type NamespaceSettings,
  plannedSettings,
  type SettingChange,
  settingChanges,
} from "./resource.ts";

const policies = accessPolicy.definition;

/** The namespace itself, with its settings and its access mode. */
export const namespace: Kind = {
  definition,
  keyOf: ({ id }) => id,
  reading: listedBy(definition, {
    what: "the settings of the namespace",
    missed: "changed settings cannot be detected",
  }),
  parts: undefined,
  watched: undefined,
  operations: { create: ["createNamespace"], update: ["editNamespace"], delete: ["deleteNamespace"] },
  plan: {
    stage: "mode",
    keyOf: (before) => outputOf(before, "tenant"),
    newKey: ({ live }) => live.tenant,
    create: (draft, planned) => planned.after && changeSettings(draft, planned.after),
    update: (draft, planned) => planned.after && changeSettings(draft, planned.after),
    remove: (draft) => draft.clear(),
  },
  quota: undefined,
  decides: undefined,
  role: undefined,
  changes: changeList<SettingChange>({
    list: "settings",
    title: "Setting changes",
    what: "setting change",
    between(before, after) {
      const [was, is] = [settingsOf(before), settingsOf(after)];
      return was && is ? settingChanges(was, is) : [];
    },
    sentence: settingSentence,
    gains: ({ setting, effect }) => (effect === "opens" ? [`setting ${setting}`] : []),
    weakens: ({ effect }) => effect === "weakens",
  }),
  linted: undefined,
  imported: { file: "namespace", options: { protect: true } },
};

/** Returns the settings of a namespace, or undefined if they could not be read. */
export const settingsOf = (state: HasObjects): NamespaceSettings | undefined =>
  [...(state.of(definition)?.values() ?? [])][0]?.state.settings as NamespaceSettings | undefined;

/**
 * Returns a sentence about a changed setting: `sessionRecord changes from true to false, which weakens a protection`.
 */
function settingSentence({ setting, from, to, effect }: SettingChange, style: Style): string {
  const values = `from ${style.text(JSON.stringify(from))} to ${style.text(JSON.stringify(to))}`;
  const effects = { opens: ", which allows forwarding", weakens: ", which weakens a protection" };
  return `${style.name(setting)} changes ${values}${effect ? effects[effect] : ""}`;
}

/**
 * Applies the declared settings and access mode to a draft.
 * @throws UnpredictableError if a setting, or the effect of the mode, is unknown
 */
function changeSettings(draft: Draft, after: ResourceValues): void {
  const { tenant } = draft.live;
  const object = draft.of(definition)?.get(tenant);
  const { settings: declared } = after.inputs;
  const isGiven = declared !== undefined && declared !== null && !isHidden(declared);
  if (isGiven && !definition.inputs.settings?.schema.safeParse(declared).success)
    throw invalidInput("settings");
  const live = object?.state.settings as NamespaceSettings | undefined;
  const planned = live && plannedSettings(live, declared, (value) => isHidden(value as Shown));
  if (object && planned) draft.put(definition, tenant, { ...object.state, settings: planned.settings });
  changeAccessMode(draft, after);
  const hidden = planned?.hidden.filter((name) => name !== "sshAccessMode") ?? [];
  if (hidden.length > 0)
    throw hiddenValues(hidden.map((name) => (name === "settings" ? name : `settings.${name}`)));
}

function changeAccessMode(draft: Draft, after: ResourceValues): void {
  const { live } = draft;
  const { settings } = after.inputs;
  const { sshAccessMode: mode } =
    typeof settings === "object" && settings !== null && !Array.isArray(settings)
      ? settings
      : { sshAccessMode: isHidden(settings) ? settings : undefined };
  const hasModes = live.facts.hasAccessModes || live.accessUnknown !== undefined;
  if (isHidden(mode) && hasModes) throw hiddenValues(["access mode"]);
  if (mode !== "legacy" && mode !== "identity") return;
  const planned = draft.of(policies);
  if (!live.facts.hasAccessModes || !planned) {
    if (mode === "legacy") return;
    throw new UnpredictableError("the access policies could not be read");
  }
  const owner = [...(live.of(members)?.values() ?? [])].find(({ state }) => state.role === "owner");
  const isSwitch = mode === "identity" && !draft.accessPoliciesDecide;
  // If no access policy exists when the mode changes to `identity`, the service creates a policy for the owner. A plan
  // with new policies avoids this only if the namespace depends on a policy. Without the dependency, the order is not
  // guaranteed.
  const isAfterPolicy = after.dependsOn?.some((urn) => ownTypeName(urnType(urn)) === policies.name) ?? false;
  const isFirst = live.of(policies)?.size === 0 && !(isAfterPolicy && planned.size > 0);
  if (isSwitch && isFirst && owner) {
    const key = "Owner access (new)";
    draft.put(policies, key, {
      policyId: key,
      name: "Owner access",
      subject: { user: String(owner.state.userId) },
      filter: { hostname: "" },
      logins: ["*"],
      sourceIps: [],
      action: "allow",
      requireReauth: false,
      reauthPeriod: 0,
    });
  }
  draft.accessPoliciesDecide = mode === "identity";
}
