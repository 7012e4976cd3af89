import { canonicalTime, hasPassed, isTime } from "@gatehouse-access/sdk/times";
import type { StateResource } from "../engine/index.ts";
import { hasEnded } from "../model/validity.ts";
import { idWithin } from "../model/values.ts";
import { urnName } from "../urn.ts";
import { agoText } from "../words.ts";
import { definitionOf, type LiveObject } from "./liveObjects.ts";

/** An object whose expiry time has passed. */
export interface ExpiredObject {
  /** Name of the resource type, such as `PublicKey`. */
  readonly kind: string;
  /** Id of the object: fingerprint of a key, id of a rule, user id of a member. */
  readonly id: string;
  /** Name of the resource that declares the object. If no resource declares the object, its display name. */
  readonly name: string;
  /** Id of the namespace. */
  readonly tenant: string;
  /** URN of the resource that declares the object; omitted if no resource declares the object. */
  readonly urn?: string;
  /** The expiry time, RFC 3339 in UTC. */
  readonly expiresAt: string;
  /**
   * The status of the expired object. `enforced`: the service ended the access. `by-run`: the access continues until
   * the next run or `gatehouse expire`. `removed`: the object no longer exists. `changed`: the object was changed out
   * of band, so `gatehouse expire` does not delete the object.
   */
  readonly status: "enforced" | "by-run" | "removed" | "changed";
  /** The fields that were changed out of band. Present only if the status is `changed`. */
  readonly changed?: readonly string[];
}

/** Returns an expired object in the format of reports. */
export const expiredObject = (
  { definition, id, name }: LiveObject,
  expiry: Pick<ExpiredObject, "urn" | "expiresAt" | "status">,
): ExpiredObject => ({
  kind: definition.name,
  id: idWithin({ id }),
  name,
  tenant: id.split("/", 1)[0] ?? "",
  ...expiry,
});

/**
 * A resource in a state, with an expiry time that has passed. The fields of the object have the values from the state.
 */
export interface ExpiredResource extends LiveObject {
  readonly urn: string;
  readonly shown: ExpiredObject;
}

/**
 * Finds the resources in a state whose expiry time has passed. `notEvaluated` contains a sentence for each resource
 * with a secret or invalid expiry time in the state.
 */
export function stateExpiry(resources: readonly StateResource[]) {
  const now = new Date();
  const expired: ExpiredResource[] = [];
  const notEvaluated: string[] = [];
  for (const { type, urn, id, outputs = {} } of resources) {
    const definition = definitionOf({ type });
    // States that earlier versions wrote have no expiry status. In these states, the output `expiresAt` is the expiry
    // time of an invitation.
    const { expiryStatus = "none", expiresAt } = outputs;
    if (!definition || expiryStatus === "none" || id === undefined) continue;
    const name = urnName(urn);
    if (typeof expiresAt !== "string" || !isTime(expiresAt) || typeof expiryStatus !== "string") {
      notEvaluated.push(`${definition.name} ${name}: the state does not contain its end in plaintext`);
    } else if (hasPassed(expiresAt, now)) {
      const object = { definition, id, name, state: outputs, urn };
      const status = expiryStatus as ExpiredObject["status"];
      // In a Terraform state, the time has the notation of the configuration.
      const expiry = { urn, expiresAt: canonicalTime(expiresAt), status };
      expired.push({ ...object, shown: expiredObject(object, expiry) });
    }
  }
  return { expired, notEvaluated };
}

/** Returns true if a live object has expired and the service enforces the expiry. */
export const hasEndedOnService = ({ state = {} }: Pick<LiveObject, "state">): boolean =>
  state.expiryStatus === "enforced" &&
  typeof state.expiresAt === "string" &&
  hasEnded(state.expiresAt, new Date());

const REMEDIES: Readonly<Partial<Record<ExpiredObject["status"], string>>> = {
  "by-run": "; the access continues until the next run or gatehouse expire",
  changed: " changed out of band; check the object, and delete the object manually",
};

/** Describes an expired object: `PublicKey temp: expired 3 days ago; delete this resource from the program`. */
export function expiredSentence({ kind, urn, expiresAt, status, changed }: ExpiredObject, name: string) {
  const source = urn
    ? "delete this resource from the program"
    : "no resource declares this object; delete the object manually";
  const fields = changed ? `; ${changed.join(", ")}` : "";
  return `${kind} ${name}: expired ${agoText(expiresAt, new Date())}; ${source}${fields}${REMEDIES[status] ?? ""}`;
}
