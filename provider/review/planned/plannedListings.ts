import type { Role } from "@gatehouse-access/sdk/contract";
import type { ApiKey, Namespace } from "../../resources/listings.ts";
import type { Estate } from "../estate.ts";
import type { PlannedApiKey, PlannedEstate, PlannedMember } from "./plannedEstate.ts";

type Member = Namespace["members"][number];

/** Members and API keys as the service will list them once a plan is carried out. */
export interface PlannedListings {
  /** Undefined where they could not be read. */
  readonly members: readonly Member[] | undefined;
  /** Undefined where they could not be read. */
  readonly apiKeys: readonly ApiKey[] | undefined;
  /** Who is left out, as sentences. */
  readonly unknown: readonly string[];
}

/** How long an invitation is open (rules section 5), in milliseconds. */
const INVITATION_MS = 7 * 86_400_000;

/**
 * Members and API keys as the service will list them; what it gives by itself to one that comes (ids, dates) is as of
 * now, and empty where only the service can tell.
 * @param makerRole the role of who carries the plan out, which an API key has that names none
 */
export function plannedListings(
  estate: Estate,
  { members, apiKeys }: Pick<PlannedEstate, "members" | "apiKeys">,
  makerRole: Role | undefined,
): PlannedListings {
  const unknown: string[] = [];
  return {
    members: members?.map((member) => listedMember(estate, member)),
    apiKeys: apiKeys?.flatMap((key) => {
      const role = key.role ?? makerRole;
      if (role !== undefined) return [listedApiKey(estate, { ...key, role })];
      unknown.push(`API key "${key.name}" will have the role of who makes it, which is not known`);
      return [];
    }),
    unknown,
  };
}

function listedMember({ members }: Estate, { userId, ...planned }: PlannedMember): Member {
  const today = members?.find(({ id }) => id === userId);
  const now = Date.now();
  return {
    ...{ id: userId, addedAt: new Date(now).toISOString(), type: "team" },
    expiresAt: new Date(now + INVITATION_MS).toISOString(),
    ...today,
    ...planned,
  };
}

function listedApiKey(
  { tenant, apiKeys }: Estate,
  { was, ...planned }: PlannedApiKey & { readonly role: Role },
): ApiKey {
  const today = apiKeys?.find(({ name }) => name === was);
  return { createdBy: "", tenantId: tenant, updatedAt: planned.createdAt, ...today, ...planned };
}
