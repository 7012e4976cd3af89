import type { Access } from "../access.ts";
import type { AccessRule } from "../facts.ts";
import { isEveryDevice, isEverything } from "./finder.ts";
import type { Finding } from "./finding.ts";

/** A finding where no rule denies what the others do not match. */
export function defaultDeny({ policy, rules }: Access): Finding[] {
  if (policy.keys.length === 0 || rules.some(deniesEverything)) return [];
  const none = rules.length === 0;
  return [
    {
      rule: "no-default-deny",
      severity: none ? "info" : "warning",
      message: none
        ? "The policy has no active firewall rule, so every login that a key admits is allowed."
        : "No active rule of the policy denies every login from every address on every device, so what no rule matches is allowed.",
      object: { kind: "policy", id: "policy", name: "policy" },
      suggestion:
        'Add a rule of the lowest priority that denies username ".*" from sourceIp ".*" on hostname ".*".',
    },
  ];
}

// A pattern that does not compile matches everything in a rule that denies.
const deniesEverything = ({ action, username, sourceIp, filter }: AccessRule): boolean =>
  action === "deny" &&
  isEverything(username, "login", true) &&
  isEverything(sourceIp, "address", true) &&
  isEveryDevice(filter, true);
