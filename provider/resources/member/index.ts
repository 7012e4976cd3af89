import type { Role } from "@gatehouse-access/sdk/contract";
import {
  type AccessKey,
  type AccessMember,
  expiryOf,
  isLaterEnd,
  type Principal,
} from "@gatehouse-access/sdk/policy";
import { DAY } from "@gatehouse-access/sdk/times";
import { changeList } from "../../model/changes.ts";
import { changedEnd, listedNames } from "../../model/changeTexts.ts";
import { type Kind, listedBy, policyEnd, type ReadObjects } from "../../model/kind.ts";
import type { DecidingFacts, HasObjects, Replaceable } from "../../model/namespaceObjects.ts";
import type { LiveObject } from "../../model/object.ts";
import { outputOf } from "../../model/plannedStep.ts";
import { gainedRole } from "../../model/roles.ts";
import { hasEnded } from "../../model/validity.ts";
import { idWithin } from "../../model/values.ts";
import type { Connection } from "../../service/connection.ts";
import type { Style } from "../../style.ts";
import type { Values } from "../../values.ts";
import { byTexts, counted, untilText } from "../../words.ts";
import { publicKey } from "../publicKey.ts";
import { readInvitations } from "./invitations.ts";
import { type Member, usersOf } from "./listing.ts";
import { definition, listedOwner } from "./resource.ts";
import { memberWith, stateOf, userIdOf } from "./users.ts";

const WHAT = "members";
const MISSED = "lockouts cannot be detected";

/** The validity period of an invitation, in milliseconds (rules section 5). */
const INVITATION_MS = 7 * DAY;

/** The role of the user who owns a namespace. No program declares this user as a member. */
const OWNER = "owner";

/** Returns the key of a member: the user id, or the e-mail address if the id is unknown. */
const keyOf = (object: LiveObject): string => idWithin(object) || stateOf(object).accountEmail.toLowerCase();

export const member: Kind = {
  definition,
  keyOf,
  reading: listedBy(definition, {
    what: WHAT,
    missed: MISSED,
    read,
  }),
  parts: undefined,
  watched: {
    counts: ({ state }) => state.role !== OWNER,
    isNamed: true,
    keptBy: (object, { userId }) => (idWithin(object) === userId ? "this user runs the command" : undefined),
  },
  operations: { create: ["inviteMember"], update: ["updateMember"], delete: ["removeMember"] },
  plan: {
    stage: "principals",
    keyOf: (before) => outputOf(before, "userId"),
    newKey(draft, { after }, { email }) {
      const address = String(email).toLowerCase();
      const known = memberWith(draft.of(definition), address);
      if (known) return keyOf(known);
      // A former member who joins again keeps the user id, so that the keys of this user authorize logins again. If a
      // removed member is drift, a plan that reverts the drift restores the user with the id in the state.
      return (after && outputOf(after, "userId")) || userIdOf(draft, address) || address;
    },
    values(draft, { planned, inputs, key, object }) {
      const email = String(inputs.email);
      if (object) return {};
      draft.newPrincipals.set(planned.step.urn, key);
      return invited(key === email.toLowerCase() ? "" : key, email, draft.now);
    },
  },
  quota: undefined,
  decides: {
    parts: (objects, facts) => {
      const all = [...objects];
      return { members: all.map(accessMember), principals: all.map((object) => principal(object, facts)) };
    },
    // In legacy mode, a member has access only through public keys that the user owns.
    isDeciding: (object, { identity, keys }) =>
      identity !== undefined || ownersOf(keys).has(accessMember(object).id),
    subject: "user",
  },
  role: (object) => ({ role: stateOf(object).role }),
  changes: changeList<MemberChange>({
    list: "members",
    title: "Member changes",
    what: "member change",
    between: (before, after) =>
      memberChanges(membersOf(before) ?? [], membersOf(after) ?? [], [
        ...(after.of(publicKey.definition)?.values() ?? []),
      ]),
    sentence: memberSentence,
    isLoss: ({ change }) => change === "removed",
    // A change without `until` does not change the expiry time.
    roles: (change) =>
      gainedRole(
        change,
        `member ${change.email}`,
        change.until !== undefined && isLaterEnd(change.untilBefore ?? undefined, change.until ?? undefined),
      ),
  }),
  linted: (objects) => ({
    // An invitation that a plan creates always expires soon, so the lint does not check it.
    invitations: [...objects.values()]
      .filter(({ facts }) => !facts?.isPlanned)
      .map(memberIn)
      .filter(({ id, status }) => id !== "" && status === "pending")
      .map(({ email, role, expiresAt }) => ({ email, role, expiresAt: expiryOf(expiresAt) })),
  }),
  imported: { file: "members", naming: "email" },
};

/**
 * Reads the members, the invited users and the owner of a namespace. Services newer than release 0.19 have a separate
 * list of invitations.
 */
async function read(connection: Connection, tenant: string): Promise<ReadObjects> {
  const opened = await connection.tenant(tenant);
  const namespace = await connection.namespaces.find(tenant);
  const users = namespace && (await usersOf(opened, namespace));
  if (!users || users.length === 0 || users.some(({ email }) => email === "")) {
    const reason = "the service does not return the members with their e-mail addresses";
    return { objects: undefined, unread: { what: WHAT, missed: MISSED, reason } };
  }
  const { error } = await readInvitations(opened, users);
  const listed = (await definition.list?.(connection, tenant)) ?? [];
  const missed = "unmanaged invitations cannot be detected";
  return {
    objects: [
      ...users.filter(({ role }) => role === OWNER).map((owner) => listedOwner(tenant, owner)),
      ...listed,
    ],
    ...(error && { unread: { what: "invitations", reason: error.message, missed } }),
  };
}

/** Returns the values of a new member. The status is `invited`, because some services send an invitation first. */
const invited = (userId: string, email: string, now: Date): Values => ({
  userId,
  accountEmail: email,
  status: "invited",
  addedAt: now.toISOString(),
  invitationExpiresAt: new Date(now.getTime() + INVITATION_MS).toISOString(),
});

/**
 * A cache of the owners of keys, for each list of keys. A report checks many members of one namespace, so it needs the
 * same owners many times.
 */
const owners = new WeakMap<readonly AccessKey[], ReadonlySet<string | undefined>>();

function ownersOf(keys: readonly AccessKey[]): ReadonlySet<string | undefined> {
  const known = owners.get(keys) ?? new Set(keys.map(({ owner }) => owner));
  owners.set(keys, known);
  return known;
}

/**
 * Converts a member to the form that policies contain. If the service does not return the id of the user, the e-mail
 * address is the id.
 */
function accessMember(object: LiveObject): AccessMember {
  const { userId, accountEmail: email, status, expiresAt } = stateOf(object);
  return { id: userId || email, email, isAccepted: status === "accepted", ...policyEnd({ expiresAt }) };
}

function principal(object: LiveObject, { userKeys }: DecidingFacts): Principal {
  const { userId, accountEmail: email, role } = stateOf(object);
  const keys = userKeys && (userKeys.get(userId) ?? userKeys.get(email.toLowerCase()) ?? []);
  return { id: userId || email, name: email, kind: "user", role, keys };
}

/** Converts a member or an invited user to the form in which services list them. */
function memberIn(object: LiveObject): Member {
  const state = stateOf(object);
  const { userId: id, accountEmail: email, role, status, addedAt } = state;
  return {
    id,
    email,
    role,
    addedAt,
    type: "team",
    status: status === "accepted" ? "accepted" : "pending",
    expiresAt: state.invitationExpiresAt || NO_END,
    ...(state.expiresAt && { accessExpiresAt: state.expiresAt }),
  };
}

/** The expiry time that services return for an invitation that does not expire. */
const NO_END = "0001-01-01T00:00:00Z";

/** Returns the members and invited users of a namespace, or undefined if they could not be read. */
export function membersOf(state: HasObjects): Member[] | undefined {
  const objects = state.of(definition);
  return objects && Array.from(objects.values(), memberIn);
}

/**
 * Returns a copy of the namespace in which invited users have accepted their invitations, because they can accept at
 * any time without a review.
 */
export function invitedAsMembers<S extends HasObjects & Replaceable<S>>(state: S): S {
  const accepted = Array.from(state.of(definition) ?? [], ([key, object]) => {
    return [key, { ...object, state: { ...object.state, status: "accepted" } }] as const;
  });
  return accepted.length === 0 ? state : state.withObjects(definition, new Map(accepted));
}

/** Returns true if a membership has expired at the given time. */
export const hasMembershipEnded = ({ accessExpiresAt }: Pick<Member, "accessExpiresAt">, at: Date): boolean =>
  hasEnded(accessExpiresAt ?? "", at);

/** A change to a member: the member is added or removed, or gets a different role or expiry time. */
export interface MemberChange {
  readonly change: "added" | "removed" | "role" | "end";
  readonly email: string;
  /**
   * The role before the change. Omitted for a new member. Servers of version 0.27 or later also have the role
   * `service`.
   */
  readonly from?: Role | "service";
  /** The role after the change. Omitted for a removed member. */
  readonly to?: Role | "service";
  /**
   * The expiry time of the membership after the change. Null if the membership does not expire. Omitted if the expiry
   * time does not change.
   */
  readonly until?: string | null;
  /**
   * The expiry time of the membership before the change. Null if the membership did not expire. Omitted if `until` is
   * omitted.
   */
  readonly untilBefore?: string | null;
  /**
   * The names of the public keys that the member owns. The service refuses these keys after the change. Omitted if the
   * membership continues.
   */
  readonly refusedKeys?: readonly string[];
}

type Roled = Pick<Member, "id" | "email" | "role" | "accessExpiresAt">;

/**
 * Returns the changes to the members: additions, removals, and changed roles or expiry times.
 * @param keys the public keys after the change
 */
export function memberChanges(
  before: readonly Roled[],
  after: readonly Roled[],
  keys: readonly LiveObject[] = [],
): MemberChange[] {
  const was = new Map(before.map((member) => [member.email, member]));
  const is = new Map(after.map((member) => [member.email, member]));
  const now = new Date();
  const isOver = (member: Roled) => hasMembershipEnded(member, now);
  const changes = [...new Set([...was.keys(), ...is.keys()])].flatMap((email): MemberChange[] => {
    const member = is.get(email);
    const present = was.get(email);
    // An expired membership gives no role.
    const old = present && isOver(present) ? undefined : present;
    if (!old && (!member || isOver(member))) return [];
    const [from, to] = [old?.role, member?.role];
    const [untilBefore = null, until = null] = [old, member].map(
      (one) => policyEnd({ expiresAt: one?.accessExpiresAt }).expiresAt,
    );
    const isEndChanged = member !== undefined && until !== untilBefore;
    if (from === to && !isEndChanged) return [];
    const change = from === undefined ? "added" : to === undefined ? "removed" : from === to ? "end" : "role";
    const isEnded = !member || isOver(member);
    const owned = keys.filter(
      ({ state: { ownerId } }) => ownerId && [old?.id, email].includes(String(ownerId)),
    );
    return [
      {
        change,
        email,
        ...(from && { from }),
        ...(to && { to }),
        ...(isEndChanged && { until, untilBefore }),
        ...(isEnded && owned.length > 0 && { refusedKeys: owned.map(({ name }) => name) }),
      },
    ];
  });
  return changes.sort(byTexts(({ email }) => email));
}

/** Returns a sentence about a changed member: `carla@example.com becomes observer (was administrator)`. */
export function memberSentence(change: MemberChange, style: Style): string {
  const { email, from, to, until, untilBefore = null, refusedKeys: keys = [] } = change;
  const end = until === undefined ? "" : `, membership ${changedEnd({ until, untilBefore })}`;
  const owned = `${counted(keys.length, "key")} of the member (${listedNames(keys, style)})`;
  const refused = keys.length > 0 ? `. The service refuses ${owned} and ends the sessions` : "";
  switch (change.change) {
    case "added":
      return `${style.name(email)} is added as ${to}${until ? ` ${untilText(until)}` : ""}`;
    case "removed":
      return `${style.name(email)} is removed (was ${from})${refused}`;
    case "role":
      return `${style.name(email)} becomes ${to} (was ${from})${end}`;
    case "end":
      return `${style.name(email)} (${to})${end}${refused}`;
  }
}
