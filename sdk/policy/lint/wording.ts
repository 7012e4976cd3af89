import type { AccessKey, AccessRule } from "../facts.ts";
import type { DeviceFilter } from "../keyAdmits.ts";
import type { FindingObject } from "./finding.ts";

/** Most names that a sentence lists. */
const NAMES_MAX = 3;

/** A text that somebody else chose, within a sentence. */
export const quoted = (text: string): string => JSON.stringify(text);

/** Names within a sentence. */
export function listed(names: readonly string[]): string {
  const more = names.length - NAMES_MAX;
  const shown = names.slice(0, NAMES_MAX).map(quoted);
  if (more > 0) return `${shown.join(", ")} and ${more} more`;
  return shown.length < 2 ? shown.join() : `${shown.slice(0, -1).join(", ")} and ${shown.at(-1)}`;
}

/** A public key as what a finding is about. */
export const keyObject = ({ fingerprint, name }: AccessKey): FindingObject => ({
  kind: "key",
  id: fingerprint,
  name,
});

/** A rule as what a finding is about. */
export const ruleObject = ({ id }: AccessRule): FindingObject => ({ kind: "rule", id, name: id });

/** Tells the objects of findings apart. */
export const objectId = ({ kind, id }: FindingObject): string => `${kind} ${id}`;

/** A public key at the beginning of a sentence. */
export const keyName = ({ name }: AccessKey): string => `Key ${quoted(name)}`;

/** A rule at the beginning of a sentence. */
export const ruleName = (rule: AccessRule): string => `Rule ${ruleText(rule)}`;

/** A rule within a sentence. */
export const ruleText = ({ id, action, priority }: AccessRule): string =>
  `${quoted(id)} (${action}, priority ${priority})`;

/** A filter within a sentence. */
export function filterText({ hostname, tags = [] }: DeviceFilter): string {
  if (hostname) return `filter.hostname ${quoted(hostname)}`;
  return tags.length > 0 ? `filter.tags ${listed(tags)}` : "empty filter";
}

/** The field of a filter that says which devices it is for. */
export function fieldOf({ hostname, tags = [] }: DeviceFilter) {
  if (hostname) return "filter.hostname";
  return tags.length > 0 ? "filter.tags" : "filter";
}
