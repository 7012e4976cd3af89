import { type Client, NotFoundError, PermissionError } from "@gatehouse-access/sdk";
import type { ObjectKind } from "@gatehouse-access/sdk/contract";
import { displayTime } from "../words.ts";

/** The change of an object and the actor who made the change, from an entry of the audit trail. */
export interface TrailNote {
  /** Time of the change, RFC 3339 in UTC. */
  readonly at: string;
  /** Id of the operation. */
  readonly operation: string;
  readonly actor: {
    readonly kind: "user" | "apikey" | "device" | "workload" | "operator";
    readonly id: string;
    readonly name: string;
  };
  /** Source address of the request; empty for an operator of the service. */
  readonly address: string;
  /** Id of the request in the service's log. */
  readonly requestId: string;
  /**
   * The resource that the request declared as its origin. The value is only a hint, since every client can forge it.
   */
  readonly declaredBy?: DeclaringResource;
}

/** The resource of a program that declares an object. */
export interface DeclaringResource {
  readonly project: string;
  readonly stack: string;
  readonly resource: string;
}

/** Kind and id of an object in the audit trail. */
interface TrailObject {
  readonly kind: ObjectKind;
  readonly id: string;
}

/** Returns true if two declarations are of the same stack: of one project, and with one name. */
export const isSameStack = (
  one: Pick<DeclaringResource, "project" | "stack">,
  two: Pick<DeclaringResource, "project" | "stack">,
): boolean => one.project === two.project && one.stack === two.stack;

/** Returns a resource of a program as text. */
export const declarationText = ({ project, stack, resource }: DeclaringResource): string =>
  `${resource} of ${project}/${stack}`;

/** Returns the actor, the time and the operation of a change as text. */
export function actorText({ actor, address, at, operation, declaredBy }: TrailNote): string {
  const who = {
    user: `user ${actor.name}`,
    apikey: `API key ${actor.name}`,
    device: `device ${actor.id}`,
    workload: `the workload ${actor.name}`,
    operator: "an operator of the service",
  }[actor.kind];
  const where = address === "" ? "" : ` from ${address}`;
  const declared = declaredBy ? `, for ${declarationText(declaredBy)} according to the request` : "";
  return `last changed by ${who}${where}, ${displayTime(at)} (${operation}${declared})`;
}

/** Returns the last change of an object. Undefined if the audit trail has no entry for the object. */
export async function lastChange(
  client: Client,
  tenant: string,
  { kind, id: object }: { readonly kind: string; readonly id: string },
): Promise<TrailNote | undefined> {
  const query = { kind, object, perPage: 1 };
  const [entry] = await client.getAuditTrail({ params: { tenant }, query });
  return entry && noteOf(entry);
}

/**
 * Returns the last change of an object like {@link lastChange}. Also undefined if the service has no audit trail, or the
 * credential may not read it.
 */
export async function lastChangeIfReadable(
  client: Client,
  tenant: string,
  object: TrailObject,
): Promise<TrailNote | undefined> {
  try {
    return await lastChange(client, tenant, object);
  } catch (error) {
    if (error instanceof NotFoundError || error instanceof PermissionError) return undefined;
    throw error;
  }
}

/** Maximum number of entries of one object that are searched, starting with the newest entry. */
const SEARCHED_MAX = 1_000;

/** The declared fields of an object before and after a change, as the audit trail contains them. */
interface TrailChange {
  readonly before: unknown;
  readonly after: unknown;
}

/**
 * Returns the newest change of an object that meets a condition. Undefined if the newest entries of the audit trail
 * contain no such change.
 */
export async function changeThat(
  client: Client,
  tenant: string,
  { kind, id: object }: TrailObject,
  isWanted: (change: TrailChange) => boolean,
): Promise<TrailNote | undefined> {
  let searched = 0;
  const query = { kind, object, perPage: 100 };
  for await (const entry of client.iterate("getAuditTrail", { params: { tenant }, query })) {
    if (isWanted(entry)) return noteOf(entry);
    searched += 1;
    if (searched === SEARCHED_MAX) return undefined;
  }
  return undefined;
}

/** The kinds of objects in the audit trail that have no effect on the decision about a login. */
const WITHOUT_EFFECT: ReadonlySet<string> = new Set([
  "apiKey",
  "trustedWorkload",
  "tunnel",
  "connector",
  "session",
  "billing",
]);

/** Maximum number of entries that are searched for the last change of the policy, starting with the newest entry. */
const POLICY_SEARCHED_MAX = 10_000;

/** The last change of the objects that authorize the logins to a namespace. */
export interface PolicyChange {
  /** Id of the entry in the audit trail. */
  readonly entry: number;
  readonly at: string;
  readonly note: TrailNote;
}

/**
 * Returns the last change of the objects that authorize the logins to a namespace. An object of an unknown kind is
 * treated as such an object. Undefined if the audit trail contains no such change, and `unknown` if it has more entries
 * than the search reads.
 * @param since the search ends at the first entry before this time; default: the search has no such end
 * @throws PermissionError if the credential may not read the audit trail; NotFoundError if the server has no audit trail
 */
export async function lastPolicyChange(
  client: Client,
  tenant: string,
  since?: Date,
): Promise<PolicyChange | "unknown" | undefined> {
  let searched = 0;
  const query = { perPage: 100 };
  for await (const entry of client.iterate("getAuditTrail", { params: { tenant }, query })) {
    // A device changes no policy. The audit trail contains the enrollments of devices, which any client can cause.
    const isChange = entry.actor.kind !== "device" && !WITHOUT_EFFECT.has(entry.object.kind);
    if (isChange) return { entry: entry.id, at: entry.at, note: noteOf(entry) };
    searched += 1;
    if (since && new Date(entry.at) < since) return undefined;
    if (searched === POLICY_SEARCHED_MAX) return "unknown";
  }
  return undefined;
}

type Entry = Awaited<ReturnType<Client["getAuditTrail"]>>[number];

/** Returns the change that an entry of the audit trail describes. */
export const noteOf = ({ at, operation, actor, address, requestId, declaredBy }: Entry): TrailNote => {
  return { at, operation, actor, address, requestId, ...(declaredBy && { declaredBy }) };
};
