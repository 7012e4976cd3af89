import type { Access } from "@gatehouse-access/sdk/policy";
import { allowedCases, refusedExamples } from "./cases.ts";
import type { Finding, Judge } from "./judgement.ts";
import { readNetworks, readQuery } from "./query.ts";
import { type Selection, select, within } from "./selection.ts";

/** What `expect(access)` can say. */
export const accessMatchers = { toAllow, onlyFrom } satisfies Record<string, Judge>;

function toAllow(subject: unknown, [query, ...more]: readonly unknown[], negated: boolean): Finding {
  if (more.length > 0) throw new TypeError("toAllow(): takes one query");
  const selection = select(accessOf("toAllow", subject), readQuery("toAllow", query));
  const { count, examples } = allowedCases(selection);
  const missing = missingOf(selection);
  if (count > 0) return { ...found(selection, count), holds: true, counterexamples: examples };
  return {
    ...found(selection, 0),
    holds: false,
    message: missing === undefined ? "nothing of it is allowed" : `nothing of it is allowed: it ${missing}`,
    counterexamples: negated ? [] : refusedExamples(selection),
    vacuous: missing,
  };
}

function onlyFrom(subject: unknown, [given, query = {}, ...more]: readonly unknown[]): Finding {
  if (more.length > 0) throw new TypeError("onlyFrom(): takes networks and a query");
  const access = accessOf("onlyFrom", subject);
  const networks = readNetworks("onlyFrom", given);
  const read = readQuery("onlyFrom", query);
  if (read.from) throw new TypeError("onlyFrom(): from: its networks are the first argument");
  const outside = select(access, read, networks, (address) => !within(networks, address));
  const { count, examples } = allowedCases(outside);
  const vacuous = missingOf(outside);
  if (count > 0) {
    const seen = found(outside, count);
    const message = `${seen.message} from elsewhere`;
    return { ...seen, holds: false, message, counterexamples: examples };
  }
  return { ...found(outside, 0), holds: true, message: "nothing is allowed from elsewhere", vacuous };
}

function found({ access }: Selection, cases: number) {
  const { policy, domain } = access;
  return {
    message: cases === 1 ? "1 case is allowed" : `${cases} cases are allowed`,
    cases,
    lookedAt: { keys: policy.keys.length, devices: policy.devices.length, ...domain },
  };
}

const missingOf = ({ missing }: Selection): string | undefined =>
  missing.length > 0 ? `matched no ${missing.join(" and no ")}` : undefined;

/** By its form, for a policy file may have another copy of the class. */
function accessOf(matcher: string, subject: unknown): Pick<Access, "policy" | "domain"> {
  const { policy, domain } = (subject ?? {}) as Partial<Access>;
  if (!policy || !domain) throw new TypeError(`${matcher}(): is for access, as a policy test gets it`);
  return { policy, domain };
}
