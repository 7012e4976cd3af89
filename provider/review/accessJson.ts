import { ANY_ADDRESS } from "@gatehouse-access/sdk/policy";
import { accessRows } from "./accessRows.ts";
import type { AccessView } from "./accessView.ts";

/**
 * Who can reach what, as JSON in parts: one object, in which each of `grants` stands on a line of its own. The shape is
 * described in docs/access.md.
 */
export function* accessJson(view: AccessView): Generator<string> {
  const { estate, devices, keys, domain, notes } = view;
  const head = {
    namespace: estate.tenant,
    domain: { ...domain, anyAddress: ANY_ADDRESS },
    sessions: estate.seen.sessions,
    unknown: estate.unknown,
    notes,
    devices,
    keys,
    rules: estate.policy.rules,
  };
  yield `${JSON.stringify(head, null, 1).slice(0, -2)},\n "grants": [`;
  let separator = "\n";
  for (const { key, rule, logins, addresses, devices } of accessRows(view)) {
    const grant = { key: key.fingerprint, logins, addresses, rule: rule?.id ?? null, devices };
    yield `${separator}  ${JSON.stringify(grant)}`;
    separator = ",\n";
  }
  yield "\n ]\n}\n";
}
