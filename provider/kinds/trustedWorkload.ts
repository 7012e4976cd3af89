import { isDeepStrictEqual } from "node:util";
import type { Role } from "@gatehouse-access/sdk/contract";
import { printableIssuer } from "@gatehouse-access/sdk/errors";
import { definitionsByName } from "../resources/index.ts";
import { idWithin } from "../resources/values.ts";
import type { TrustedWorkload } from "../service/listings.ts";
import { PLAIN, type Style } from "../style.ts";
import { byText, byTexts, counted } from "../words.ts";
import { changeList } from "./changes.ts";
import { type Kind, listedBy } from "./kind.ts";
import type { HasObjects } from "./namespaceObjects.ts";
import type { LiveObject } from "./object.ts";
import { outputOf } from "./plannedStep.ts";
import { gainedRole } from "./roles.ts";

const definition = definitionsByName.TrustedWorkload;

/** The settings of a trusted workload. */
export type Workload = Pick<
  TrustedWorkload,
  "id" | "name" | "issuer" | "audience" | "claims" | "role" | "maxSessionMinutes" | "singleUse"
>;

export const trustedWorkload: Kind = {
  definition,
  keyOf: idWithin,
  reading: listedBy(definition, {
    what: "trusted workloads",
    missed: "unmanaged workloads cannot be detected",
  }),
  parts: undefined,
  watched: {
    keptBy: (object, { workloadId }) =>
      idWithin(object) === workloadId ? "this workload runs the command" : undefined,
  },
  operations: {
    create: ["createTrustedWorkload"],
    update: ["updateTrustedWorkload"],
    delete: ["deleteTrustedWorkload"],
  },
  plan: {
    stage: "objects",
    keyOf: (before) => outputOf(before, "workloadId"),
    // A new resource adopts the workload with the same name.
    newKey: ({ live }, _planned, { name }) =>
      [...(live.of(definition) ?? [])].find(([, { state }]) => state.name === name)?.[0],
    values: (_draft, { key }) => ({ workloadId: key }),
  },
  decides: undefined,
  role: (object) => {
    const workload = workloadIn(object);
    return { role: workload.role, tokens: tokensPhrase(workload, PLAIN) };
  },
  changes: changeList<WorkloadChange>({
    list: "workloads",
    title: "Trusted workload changes",
    what: "workload change",
    between: (before, after) => workloadChanges(workloadsOf(before) ?? [], workloadsOf(after) ?? []),
    sentence: workloadSentence,
    roles: (change) => gainedRole(change, `workload ${change.name}`, change.acceptedBefore !== undefined),
  }),
  linted: (objects) => ({ trustedWorkloads: Array.from(objects.values(), workloadIn) }),
  imported: { file: "workloads", naming: "name" },
};

function workloadIn({ state }: LiveObject): Workload {
  const {
    workloadId: id,
    name,
    issuer,
    audience,
    claims,
    role,
    maxSessionMinutes,
    singleUse,
  } = state as unknown as Omit<Workload, "id"> & { readonly workloadId: string };
  return { id, name, issuer, audience, claims, role, maxSessionMinutes, singleUse };
}

/** Returns the trusted workloads of a namespace; undefined if they could not be read. */
export function workloadsOf(state: HasObjects): Workload[] | undefined {
  const objects = state.of(definition);
  return objects && Array.from(objects.values(), workloadIn);
}

/** The tokens that a trusted workload accepts. */
export interface AcceptedTokens {
  readonly issuer: string;
  readonly audience: string;
  /** The required claims by name. */
  readonly claims: Readonly<Record<string, string>>;
  readonly maxSessionMinutes: number;
  readonly singleUse: boolean;
}

/** A trusted workload that is added, is removed, or gets another role or other conditions. */
export interface WorkloadChange {
  readonly change: "added" | "removed" | "altered";
  readonly name: string;
  /** Role before the change; omitted for a new workload. */
  readonly from?: Role;
  /** Role after the change; omitted for a removed workload. */
  readonly to?: Role;
  /** The tokens that the workload accepts after the change; omitted for a removed workload. */
  readonly accepts?: AcceptedTokens;
  /** The tokens that the workload accepted before the change; omitted if they are the same. */
  readonly acceptedBefore?: AcceptedTokens;
}

/** Returns the trusted workloads that are added, removed, or get another role or other conditions, by name. */
function workloadChanges(before: readonly Workload[], after: readonly Workload[]): WorkloadChange[] {
  const was = new Map(before.map((workload) => [workload.id, workload]));
  const is = new Map(after.map((workload) => [workload.id, workload]));
  const changes = [...new Map([...was, ...is]).values()].flatMap(({ id, name }): WorkloadChange[] => {
    const [old, now] = [was.get(id), is.get(id)];
    const [acceptedBefore, accepts] = [old && tokensOf(old), now && tokensOf(now)];
    const isSame = isDeepStrictEqual(acceptedBefore, accepts);
    if (old?.role === now?.role && isSame) return [];
    const change = !old ? "added" : !now ? "removed" : "altered";
    return [
      {
        change,
        name,
        ...(old && { from: old.role }),
        ...(now && { to: now.role, accepts }),
        ...(now && acceptedBefore && !isSame && { acceptedBefore }),
      },
    ];
  });
  return changes.sort(byTexts(({ name }) => name));
}

const tokensOf = ({ issuer, audience, claims, maxSessionMinutes, singleUse }: Workload): AcceptedTokens => ({
  issuer,
  audience,
  claims,
  maxSessionMinutes,
  singleUse,
});

/**
 * A sentence about a changed trusted workload: `deploy becomes administrator (was operator)`, with the accepted tokens if
 * they change.
 */
export function workloadSentence(change: WorkloadChange, style: Style): string {
  const { from, to, accepts, acceptedBefore } = change;
  const name = style.name(change.name);
  if (accepts === undefined) return `${name} is removed (was ${from})`;
  const tokens = tokensPhrase(accepts, style);
  if (change.change === "added") return `${name} is added as ${to}, for ${tokens}`;
  const role = from === to ? `${name} (${to})` : `${name} becomes ${to} (was ${from})`;
  return acceptedBefore ? `${role}: ${tokens} (before: ${tokensPhrase(acceptedBefore, style)})` : role;
}

/** The tokens that a trusted workload accepts: `tokens of <issuer> with repository "acme/fleet", used once`. */
function tokensPhrase(
  { issuer, audience, claims, maxSessionMinutes, singleUse }: AcceptedTokens,
  style: Style,
): string {
  const conditions = Object.entries(claims)
    .toSorted(([left], [right]) => byText(left, right))
    .map(([name, value]) => style.text(`${name} ${JSON.stringify(value)}`));
  return `tokens of ${style.text(printableIssuer(issuer))} for ${style.text(audience)} with ${conditions.join(" and ")}, up to ${counted(maxSessionMinutes, "minute")}${singleUse ? ", used once" : ""}`;
}
