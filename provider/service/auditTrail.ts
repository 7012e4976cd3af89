import { type Client, NotFoundError, PermissionError } from "@gatehouse-access/sdk";
import type { ObjectKind } from "@gatehouse-access/sdk/contract";
import { displayTime } from "../words.ts";

/** A change to an object and the actor who made the change, from an audit trail entry. */
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
  /** The resource that the request declared as its origin. The value is only a hint, since any client can forge it. */
  readonly declaredBy?: DeclaringResource;
}

/** The resource of a program that declares an object. */
export interface DeclaringResource {
  readonly project: string;
  readonly stack: string;
  readonly resource: string;
}

/** An object in the audit trail, identified by its kind and id. */
interface TrailObject {
  readonly kind: ObjectKind;
  readonly id: string;
}

/** Returns true if two declarations belong to the same stack: their project and their stack name are equal. */
export const isSameStack = (
  one: Pick<DeclaringResource, "project" | "stack">,
  two: Pick<DeclaringResource, "project" | "stack">,
): boolean => one.project === two.project && one.stack === two.stack;

/** Returns the text for a resource of a program. */
export const declarationText = ({ project, stack, resource }: DeclaringResource): string =>
  `${resource} of ${project}/${stack}`;

/** Returns a text with the actor, the time and the operation of a change. */
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

/** Returns the last change to an object. Returns undefined if the audit trail has no entry for the object. */
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
 * Returns the last change to an object, like {@link lastChange}. Also returns undefined if the service has no audit
 * trail, or if the credential may not read it.
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

/** Maximum number of entries that are searched for one object, starting with the newest entry. */
const SEARCHED_MAX = 1_000;

/** The declared fields of an object before and after a change, as the audit trail contains them. */
interface TrailChange {
  readonly before: unknown;
  readonly after: unknown;
}

/**
 * Returns the newest change to an object for which `isWanted` returns true. Searches only the newest audit trail
 * entries, and returns undefined if they contain no such change.
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

/** The object kinds in the audit trail that do not affect whether a login is allowed. */
const WITHOUT_EFFECT: ReadonlySet<string> = new Set([
  "apiKey",
  "trustedWorkload",
  "tunnel",
  "connector",
  "session",
  "billing",
]);

/** Maximum number of entries that are searched for the last change to the policy, starting with the newest entry. */
const POLICY_SEARCHED_MAX = 10_000;

/** The last change to the objects that authorize logins in a namespace. */
export interface PolicyChange {
  /** Id of the audit trail entry. */
  readonly entry: number;
  readonly at: string;
  readonly note: TrailNote;
}

/**
 * Returns the last change to the objects that authorize logins in a namespace. Includes objects of an unknown kind.
 * Returns undefined if the audit trail contains no such change. Returns `unknown` if the search reaches its maximum
 * number of entries before it finds such a change.
 * @param since the search stops at the first entry before this time; default: no limit
 * @throws PermissionError if the credential may not read the audit trail; NotFoundError if the server has no audit
 *   trail
 */
export async function lastPolicyChange(
  client: Client,
  tenant: string,
  since?: Date,
): Promise<PolicyChange | "unknown" | undefined> {
  let searched = 0;
  const query = { perPage: 100 };
  for await (const entry of client.iterate("getAuditTrail", { params: { tenant }, query })) {
    // Devices do not change the policy. Their entries are enrollments, which any client can cause.
    const isChange = entry.actor.kind !== "device" && !WITHOUT_EFFECT.has(entry.object.kind);
    if (isChange) return { entry: entry.id, at: entry.at, note: noteOf(entry) };
    searched += 1;
    if (since && new Date(entry.at) < since) return undefined;
    if (searched === POLICY_SEARCHED_MAX) return "unknown";
  }
  return undefined;
}

type Entry = Awaited<ReturnType<Client["getAuditTrail"]>>[number];

/** Returns the change in an audit trail entry. */
export const noteOf = ({ at, operation, actor, address, requestId, declaredBy }: Entry): TrailNote => {
  return { at, operation, actor, address, requestId, ...(declaredBy && { declaredBy }) };
};
