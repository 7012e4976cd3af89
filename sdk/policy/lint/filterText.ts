import type { DeviceFilter } from "../keyAdmits.ts";
import { listed, quoted } from "./wording.ts";

/** A filter within a sentence. */
export function filterText({ hostname, tags = [] }: DeviceFilter): string {
  if (hostname) return `filter.hostname ${quoted(hostname)}`;
  return tags.length > 0 ? `filter.tags ${listed(tags)}` : "empty filter";
}

/** What of a filter says which devices it is for. */
export function fieldOf({ hostname, tags = [] }: DeviceFilter) {
  if (hostname) return "filter.hostname";
  return tags.length > 0 ? "filter.tags" : "filter";
}
