import type { DriftReport } from "../../../../provider/drift/driftReport.ts";
import type { MemberChange, NamespaceReview, ReviewedAccess } from "../../../../provider/review/report/review.ts";
import { ADDRESSES, type Decisions, type Login, LOGINS, loginOf } from "./TruthWorld.ts";

/** The part of a report that states changed access and roles. */
export type Stated = Pick<NamespaceReview, "access" | "members" | "workloads">;

interface Evaluated {
  readonly logins: readonly string[];
  readonly addresses: readonly string[];
}

/** Throws an error unless the service is asked for all logins and addresses that the product evaluates. */
export function requireAsked({ logins, addresses }: Evaluated): void {
  const others = [
    ...logins.filter((login) => !LOGINS.includes(login)),
    ...addresses.filter((address) => !ADDRESSES.includes(address)),
  ];
  if (others.length > 0) throw new Error(`the product also evaluates ${others.join(", ")}; add them to the test`);
}

/** The logins of all lines of one change. */
function loginsOf(access: readonly ReviewedAccess[], change: ReviewedAccess["change"]): Set<Login> {
  const logins = new Set<Login>();
  for (const line of access.filter((one) => one.change === change)) {
    for (const { fingerprint } of line.keys) {
      for (const login of line.logins) {
        for (const address of line.addresses) {
          for (const uid of line.devices) logins.add(loginOf(fingerprint, login, address, uid));
        }
      }
    }
  }
  return logins;
}

const isEvaluated = ({ logins, addresses }: Evaluated) => {
  const [names, from] = [new Set(logins), new Set(addresses)];
  return (login: Login) => {
    const [, name = "", address = ""] = login.split(" ");
    return names.has(name) && from.has(address);
  };
};

/** Compares the stated changes of access with the difference between the decisions of the service. */
export function accessDifferences(
  access: readonly ReviewedAccess[],
  evaluated: Evaluated,
  before: Decisions,
  after: Decisions,
): string[] {
  requireAsked(evaluated);
  const counts = isEvaluated(evaluated);
  const only = (these: Decisions, those: Decisions) =>
    new Set([...these.allowed].filter((login) => !those.allowed.has(login) && counts(login)));
  const compared = (change: "gained" | "lost", real: ReadonlySet<Login>) => {
    const stated = loginsOf(access, change);
    const missing = [...real].filter((login) => !stated.has(login));
    const wrong = [...stated].filter((login) => !real.has(login));
    return [
      ...some(`${change} by the decisions, not stated`, missing),
      ...some(`stated as ${change}, not by the decisions`, wrong),
    ];
  };
  return [...compared("gained", only(after, before)), ...compared("lost", only(before, after))];
}

const some = (title: string, logins: readonly Login[]): string[] =>
  logins.length === 0 ? [] : [`${logins.length} logins ${title}: ${logins.slice(0, 4).join("; ")}`];

/** Compares the stated changes of members with their roles by the decisions of the service. */
export function memberDifferences(
  members: readonly MemberChange[],
  before: Decisions,
  after: Decisions,
): string[] {
  const now = new Date();
  const lasting = (until: string | null | undefined) => !until || Date.parse(until) > now.getTime();
  return rolesOf("member", before, after).flatMap(([email, from, to]) => {
    const change = members.find((one) => one.email === email);
    const stated = change && {
      from: change.from && lasting(change.untilBefore) ? change.from : undefined,
      to: change.to && lasting(change.until) ? change.to : undefined,
    };
    if (!stated) return from === to ? [] : [`member ${email}: ${from} → ${to} by the service, not stated`];
    return stated.from === from && stated.to === to
      ? []
      : [`member ${email}: ${from} → ${to} by the service, stated as ${JSON.stringify(change)}`];
  });
}

/** The roles of all subjects of a kind before and after a change. */
function rolesOf(kind: string, before: Decisions, after: Decisions) {
  const subjects = new Set([...before.roles.keys(), ...after.roles.keys()]);
  return [...subjects]
    .filter((subject) => subject.startsWith(`${kind} `))
    .map((subject) => {
      const name = subject.slice(kind.length + 1);
      return [name, before.roles.get(subject), after.roles.get(subject)] as const;
    });
}

/** Returns the differences between a report and the decisions of the service before and after. */
export function differences(
  stated: Stated | DriftReport["namespaces"][number],
  evaluated: Evaluated,
  before: Decisions,
  after: Decisions,
): string[] {
  return [
    ...(stated.access ? accessDifferences(stated.access, evaluated, before, after) : ["the access is not known"]),
    ...memberDifferences(stated.members, before, after),
  ];
}
