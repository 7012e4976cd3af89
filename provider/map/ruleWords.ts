import type { AccessRule } from "@gatehouse-access/sdk/policy";

/** What allows a login. */
export const allowedBy = (rule: AccessRule | null): string =>
  rule === null ? "allowed, as no rule matches" : `allowed by ${ruleInWords(rule)}`;

/** A rule with everything that it asks for. */
export function ruleInWords({ id, action, priority, username, sourceIp, filter }: AccessRule): string {
  const asks = [
    username === "" ? [] : [`login ${username}`],
    sourceIp === "" ? [] : [`from ${sourceIp}`],
    filter.hostname ? [`name ${filter.hostname}`] : [],
    filter.tags && filter.tags.length > 0 && !filter.hostname ? [`tags ${filter.tags.join(", ")}`] : [],
  ].flat();
  return `rule ${id} (${[action, `priority ${priority}`, ...asks].join("; ")})`;
}

