import { hasPassed } from "@gatehouse-access/sdk/policy";
import type { StateResource } from "../engine/index.ts";
import { idWithin, sameValue } from "../resources/values.ts";
import type { Connection } from "../service/connection.ts";
import { urnName } from "../urn.ts";
import { agoText } from "../words.ts";
import type { LiveObject } from "./liveObjects.ts";

/** An object whose end has passed. */
export interface ExpiredObject {
  /** Name of the resource type, such as `PublicKey`. */
  readonly kind: string;
  /** Id of the object: fingerprint of a key, id of a rule, user id of a member. */
  readonly id: string;
  /** Name of the resource that declares the object; display name of an object that no resource declares. */
  readonly name: string;
  /** Id of the namespace. */
  readonly tenant: string;
  /** URN of the resource that declares the object; omitted if no resource declares the object. */
  readonly urn?: string;
  /** The end, RFC 3339 in UTC. */
  readonly expiresAt: string;
  /** The age of the end, and the remedy, as the end of a sentence. */
  readonly message: string;
}

type Values = Readonly<Record<string, unknown>>;

type DeclaredResource = StateResource & Pick<LiveObject, "definition">;

/** A resource of a state whose end has passed. */
export interface ExpiredResource extends StateResource, Pick<LiveObject, "definition"> {
  readonly id: string;
  readonly expiresAt: string;
  /** The output `expiryStatus`: `enforced`, `by-run` or `removed`. */
  readonly expiryStatus: string;
}

/** The resources of a state whose end has passed, and the resources whose end is not known. */
export interface StateExpiry {
  readonly expired: readonly ExpiredResource[];
  /** Resources whose end is secret or invalid in the state, as sentences. */
  readonly notEvaluated: readonly string[];
}

/** Finds the resources of a state whose end has passed. */
export function stateExpiry(resources: readonly DeclaredResource[], now: Date): StateExpiry {
  const expired: ExpiredResource[] = [];
  const notEvaluated: string[] = [];
  for (const resource of resources) {
    const { definition, urn, id, outputs = {} } = resource;
    // States of earlier versions have no status. Their output `expiresAt` is the end of an invitation.
    const { expiryStatus = "none", expiresAt } = outputs;
    if (expiryStatus === "none" || id === undefined) continue;
    const isTime = typeof expiresAt === "string" && !Number.isNaN(Date.parse(expiresAt));
    if (!isTime || typeof expiryStatus !== "string")
      notEvaluated.push(
        `${definition.name} ${urnName(urn)}: the state does not contain its end in plaintext`,
      );
    else if (hasPassed(expiresAt, now)) {
      // States of Terraform keep the notation of the configuration.
      expired.push({ ...resource, id, expiresAt: new Date(expiresAt).toISOString(), expiryStatus });
    }
  }
  return { expired, notEvaluated };
}

/** The result of comparing an expired resource with its live object. */
export type LiveExpiry =
  /** The object no longer exists. */
  | { readonly status: "removed" }
  /** The service itself ends the access. */
  | { readonly status: "enforced" }
  /** The object still gives access, and is as declared. */
  | { readonly status: "by-run"; readonly state: Values }
  /** The object may give access, and was changed out of band. */
  | { readonly status: "changed"; readonly fields: readonly string[] };

/** Reads the live object of an expired resource. @throws RequestError if the object cannot be read */
export async function liveExpiry(
  connection: Connection,
  { definition, id, outputs = {} }: ExpiredResource,
  now: Date,
): Promise<LiveExpiry> {
  const live = await definition.read(connection, id, outputs);
  if (!live || live.state.expiryStatus === "removed") return { status: "removed" };
  if (isEnforced(live.state, now)) return { status: "enforced" };
  const fields = Object.entries(definition.inputs)
    .filter(([name, field]) => !field.transient && !sameValue(field, outputs[name], live.state[name]))
    .map(([name]) => name);
  return fields.length > 0 ? { status: "changed", fields } : { status: "by-run", state: live.state };
}

const isEnforced = ({ expiryStatus, expiresAt }: Values, now: Date): boolean =>
  expiryStatus === "enforced" && typeof expiresAt === "string" && hasPassed(expiresAt, now);

/** True if the service has ended the access that a live object gave. */
export const hasEndedOnService = ({ state = {} }: Pick<LiveObject, "state">, now: Date): boolean =>
  isEnforced(state, now);

/**
 * Returns an expired resource in the format of reports.
 * @param status the current `expiryStatus`; default: the status in the state
 */
export function shownResource(
  { definition, urn, id, expiresAt, expiryStatus }: ExpiredResource,
  now: Date,
  status = expiryStatus,
): ExpiredObject {
  const open = "the access continues until the next run or gatehouse expire";
  const message = `expired ${agoText(expiresAt, now)}; delete these lines${status === "by-run" ? `; ${open}` : ""}`;
  return { kind: definition.name, ...partsOf(id), name: urnName(urn), urn, expiresAt, message };
}

/** Returns a live object that has ended on the service, and that no resource declares, in the format of reports. */
export function shownLiveObject({ definition, id, name, state = {} }: LiveObject, now: Date): ExpiredObject {
  const expiresAt = String(state.expiresAt);
  const message = `expired ${agoText(expiresAt, now)}; no resource declares this object; delete the object manually`;
  return { kind: definition.name, ...partsOf(id), name, expiresAt, message };
}

/** A sentence about an expired object: `PublicKey "temp": expired 3 days ago; delete these lines`. */
export const expiredSentence = ({ kind, message }: ExpiredObject, name: string): string =>
  `${kind} ${name}: ${message}`;

const partsOf = (id: string) => ({ id: idWithin({ id }), tenant: id.split("/", 1)[0] ?? "" });

/**
 * Returns the end of a live object, and whether the service ends the access (`enforced`) or a run removes the object
 * (`by-run`). Undefined if the object does not end, also if the declared end was removed out of band.
 * @param declared the outputs of the resource that declares the object
 */
export function endOfObject({ definition, state = {} }: LiveObject, declared: Values = {}) {
  // The service ends every API key, so API keys have no status.
  const { expiryStatus = definition.name === "ApiKey" ? "enforced" : "none" } = state;
  // Only the state contains the ends that a server does not know.
  const isLocal = expiryStatus === "none" && declared.expiryStatus === "by-run";
  const [{ expiresAt }, ends] = isLocal ? [declared, "by-run"] : [state, expiryStatus];
  const isKnown =
    typeof expiresAt === "string" && expiresAt !== "" && typeof ends === "string" && ends !== "none";
  return isKnown ? { until: expiresAt, ends } : undefined;
}
