import type { Draft } from "../../model/draft.ts";
import type { LiveObject, Objects } from "../../model/object.ts";
import type { Member } from "./listing.ts";
import { definition } from "./resource.ts";

/** The values of a member in a {@link LiveObject}. */
export interface MemberState {
  readonly tenant: string;
  readonly role: Member["role"];
  /** The id of the user. Empty if the service does not return the id of an invited user. */
  readonly userId: string;
  readonly accountEmail: string;
  readonly status: "invited" | "accepted" | "expired" | "declined";
  readonly addedAt: string;
  readonly invitationExpiresAt: string;
  /** The expiry time of the membership. Empty if the membership does not expire. */
  readonly expiresAt: string;
}

/** Returns the values of a member. */
export const stateOf = ({ state }: LiveObject) => state as unknown as MemberState;

/**
 * Returns the member with this e-mail address, or undefined if there is no such member.
 * @param email the address in lower case
 */
export const memberWith = (members: Objects | undefined, email: string): LiveObject | undefined =>
  [...(members?.values() ?? [])].find((object) => stateOf(object).accountEmail.toLowerCase() === email);

/**
 * Returns the id of the user with this e-mail address. The user can be a current or planned member, a member whom the
 * plan removes, or a former member who owns keys. Returns undefined for all other addresses.
 * @param email the address in lower case
 */
export function userIdOf(draft: Draft, email: string): string | undefined {
  const { live, statedOwners } = draft;
  const known = [draft.of(definition), live.of(definition)]
    .map((members) => memberWith(members, email))
    .find((object) => object && stateOf(object).userId !== "");
  return (known && stateOf(known).userId) ?? live.facts.formerOwners.get(email) ?? statedOwners.get(email);
}
