import type { Role } from "@gatehouse-access/sdk/contract";
import type { AccessDevice, AccessPolicy } from "@gatehouse-access/sdk/policy";
import type { Estate } from "../estate.ts";
import type { Seat } from "../guards/lockouts.ts";
import { byText, byTexts } from "../words/order.ts";
import type { PlannedEstate } from "./plannedEstate.ts";
import { plannedListings } from "./plannedListings.ts";

/** A namespace at one end of a change. */
export interface NamespaceState {
  readonly policy: AccessPolicy;
  readonly seats: readonly Seat[];
  /** Members and API keys as the service lists them. */
  readonly listed: Pick<Estate, "members" | "apiKeys">;
  /** What is not known of this end alone, as sentences. */
  readonly unknown: readonly string[];
}

/** A namespace as it is. */
export const liveState = ({ policy, members, apiKeys }: Estate): NamespaceState =>
  inOrder({
    policy,
    seats: members?.map(({ id, email, role, status }) => ({ userId: id, email, role, status })) ?? [],
    listed: { members, apiKeys },
    unknown: [],
  });

/**
 * A namespace as it will be.
 * @param makerRole the role of who carries the plan out; see `plannedListings`
 */
export function plannedState(
  estate: Estate,
  planned: PlannedEstate,
  makerRole: Role | undefined,
): NamespaceState {
  const { members, apiKeys, unknown } = plannedListings(estate, planned, makerRole);
  return inOrder({
    policy: planned.policy,
    seats: planned.members ?? [],
    listed: { members, apiKeys },
    unknown: [...planned.unknown, ...unknown],
  });
}

/** Lists as people read them: services and programs have any order. That of rules means something, and stays. */
const inOrder = ({
  policy,
  seats,
  listed: { members, apiKeys },
  unknown,
}: NamespaceState): NamespaceState => ({
  policy: {
    ...policy,
    devices: policy.devices.toSorted(byDevice),
    keys: policy.keys.toSorted(
      byTexts(
        ({ name }) => name,
        ({ fingerprint }) => fingerprint,
      ),
    ),
  },
  seats: seats.toSorted(byTexts(({ email }) => email)),
  listed: {
    members: members?.toSorted(byTexts(({ email }) => email)),
    apiKeys: apiKeys?.toSorted(byTexts(({ name }) => name)),
  },
  unknown: unknown.toSorted(byText),
});

/** By name. */
export const byDevice = byTexts<AccessDevice>(
  ({ name }) => name,
  ({ uid }) => uid,
);
