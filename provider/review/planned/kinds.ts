import type { ResourceDefinition } from "../../resources/definition.ts";
import { attachmentKind, deviceKind, deviceTagsKind, tagKind } from "./devicesAndTags.ts";
import { keyKind, ruleKind } from "./keysAndRules.ts";
import type { Kind } from "./kind.ts";
import { apiKeyKind, memberKind } from "./membersAndApiKeys.ts";

const namespaceKind: Kind = {
  decisive: [],
  idOf: () => undefined,
  isLive: ({ estate }, id) => estate.tenant === id,
  remove: (draft) => draft.clear(),
  bring() {},
  change() {},
};

/** By resource, in the order in which their steps are looked at: tags and names first, since others refer to them. */
export const kinds: ReadonlyMap<string, Kind> = new Map([
  ["Tag", tagKind],
  ["Device", deviceKind],
  ["DeviceTags", deviceTagsKind],
  ["DeviceTagAttachment", attachmentKind],
  ["PublicKey", keyKind],
  ["FirewallRule", ruleKind],
  ["Member", memberKind],
  ["ApiKey", apiKeyKind],
  ["Namespace", namespaceKind],
]);

/** @throws Error for a resource that the review does not know */
export function kindOf({ name }: Pick<ResourceDefinition, "name">): Kind {
  const kind = kinds.get(name);
  if (!kind) throw new Error(`the review knows no resource ${name}`);
  return kind;
}
