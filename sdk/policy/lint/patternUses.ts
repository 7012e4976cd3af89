import type { Access } from "../access.ts";
import type { DeviceFilter } from "../keyAdmits.ts";
import type { Subject } from "./finder.ts";
import type { Field, FindingObject } from "./finding.ts";
import { keyName, keyObject, ruleName, ruleObject } from "./wording.ts";

/** A pattern, and the key or rule that has it. */
export interface PatternUse {
  readonly object: FindingObject;
  /** The name of the object at the beginning of a sentence. */
  readonly who: string;
  /** What the object does with the logins that match. */
  readonly effect: "admit" | "allow" | "deny";
  readonly field: Field;
  readonly subject: Subject;
  readonly pattern: string;
}

/** The patterns of all keys and active rules; empty ones, which match everything, are left out. */
export function patternUses({ policy, rules }: Access): PatternUse[] {
  const uses = [
    ...policy.keys.flatMap((key) => {
      const use = { object: keyObject(key), who: keyName(key), effect: "admit" } as const;
      return [
        { ...use, ...login(key.username) },
        { ...use, ...device(key.filter) },
      ];
    }),
    ...rules.flatMap((rule) => {
      const use = { object: ruleObject(rule), who: ruleName(rule), effect: rule.action } as const;
      return [
        { ...use, ...login(rule.username) },
        { ...use, ...address(rule.sourceIp) },
        { ...use, ...device(rule.filter) },
      ];
    }),
  ];
  return uses.filter(({ pattern }) => pattern !== "");
}

const login = (pattern: string) => ({ field: "username", subject: "login", pattern }) as const;
const address = (pattern: string) => ({ field: "sourceIp", subject: "address", pattern }) as const;
const device = ({ hostname = "" }: DeviceFilter) =>
  ({ field: "filter.hostname", subject: "device", pattern: hostname }) as const;
