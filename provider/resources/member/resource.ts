import { isNotFound, RequestError, sshAccessModeOf } from "@gatehouse-access/sdk";
import { dateTime, email, ROLES } from "@gatehouse-access/sdk/contract";
import { z } from "zod";
import { defineResource } from "../../model/defineResource.ts";
import { type Listed, type LiveFacts, listed, liveFacts } from "../../model/definition.ts";
import { endState, endToSend, expiring, expiryInputs, expiryOutputs } from "../../model/expiry.ts";
import { output, required, tenantInput } from "../../model/fields.ts";
import { EXAMPLE_TENANT, IdForm } from "../../model/idForm.ts";
import { guarded } from "../../model/lockoutGuard.ts";
import { ResourceError, type ResourceFault, said } from "../../resourceError.ts";
import { doubtOf, requireAbsent } from "../../service/absence.ts";
import type { Connection } from "../../service/connection.ts";
import type { Namespace } from "../../service/listings.ts";
import { hasStatus, type Invitation, invitations, isNotReturned, withdrawInvitation } from "./invitations.ts";
import { type Member, members, usersOf } from "./listing.ts";

const role = z.enum(ROLES).exclude(["owner"]);

const STATUSES = ["invited", "accepted", "expired", "declined"] as const;

const ids = new IdForm("Member", {
  tenant: EXAMPLE_TENANT,
  userId: "507f1f77bcf86cd799439011",
});

const isInvitation = ({ status }: Readonly<Record<string, unknown>>): boolean => status !== "accepted";

export const definition = defineResource({
  name: "Member",
  description:
    "A user's membership of a namespace. If the service requires an invitation, it sends the invitation to the user. The run does not wait until the user accepts the invitation. The owner is not a `Member`: ownership belongs to the namespace.",
  id: ids,
  layers: [expiring, guarded],
  object: { kind: "member" },
  idNote:
    "an import also accepts `tenant/email`; if the service omits the user ID of an invited user, the resource ID contains the e-mail address until a refresh finds the user ID",
  inputs: {
    tenant: tenantInput,
    email: required(email, {
      description:
        "The e-mail address of the user's account. Must be the user's address when the resource was created, or the user's current address.",
      replaces: true,
      canonical: (address) => address.toLowerCase(),
      // Returns true if the declared address is the current address of the user in the state. Users can change the
      // e-mail address of their account.
      sameAs: (state, address) => String(state.accountEmail).toLowerCase() === address,
    }),
    role: required(role, {
      description: "The role of the member. Must be `observer`, `operator` or `administrator`.",
    }),
    ...expiryInputs(
      "the membership",
      "the user is no longer a member, and keys that the user owns admit no login",
    ),
  },
  outputs: {
    userId: output(z.string(), {
      description: "The ID of the user. Empty if the service does not return the ID of an invited user.",
    }),
    accountEmail: output(z.string(), {
      description:
        "The current e-mail address of the user's account. Users can change it without affecting their memberships.",
    }),
    status: output(z.enum(STATUSES), {
      description:
        "The status of the membership: `invited`, `accepted`, `expired` or `declined`. The status is `accepted` if the service adds members without an invitation. The next run resends an expired invitation. A declined invitation is resent only if the role changes or the resource is replaced.",
      mutable: isInvitation,
    }),
    addedAt: output(dateTime, {
      description: "The time when the membership was created or the invitation was sent.",
      mutable: isInvitation,
    }),
    invitationExpiresAt: output(z.string(), {
      earlierName: "expiresAt",
      description:
        "The time when the invitation expires. Empty if there is no invitation, or if the service does not return the time.",
      mutable: isInvitation,
    }),
    ...expiryOutputs,
  },

  identity: {
    fields: ["tenant", "email"],
    ofInputs: ({ tenant, email }) => [{ key: `member ${tenant ?? ""} ${email}`, property: "email" }],
  },

  stale: (state, _inputs, now) => (isExpired(state, now) ? [{ field: "role", replaces: false }] : []),

  // Returns undefined for an expired or declined invitation, because a new invitation does not conflict with it.
  async find(connection, inputs) {
    const { tenant } = await connection.tenant(inputs.tenant);
    const found = await lookUp(connection, tenant, (person) => hasEmail(person, inputs.email));
    if (!found || found === "not shown" || !["accepted", "invited"].includes(found.status)) return undefined;
    return existing(tenant, inputs.email, found);
  },

  displayName: ({ accountEmail }) => String(accountEmail),

  async list(connection, tenant) {
    const people = await peopleOf(connection, tenant);
    const invited = (await people?.invited()) ?? [];
    return [...(people?.members ?? []), ...invited]
      .filter((person) => person.role !== "owner" && person.status !== "declined")
      .map((person) =>
        listed(`${tenant}/${person.id}`, person.email, toState(tenant, person.email, person), {
          declaredBy: person.declaredBy,
        }),
      );
  },

  async create(connection, inputs, { idempotencyKey }) {
    const { tenant } = await connection.tenant(inputs.tenant);
    return invite(connection, tenant, inputs, idempotencyKey);
  },

  async read(connection, id, state) {
    const { tenant, userId: idOrEmail } = ids.split(id);
    const found = await lookUp(connection, tenant, ...matchersOf(idOrEmail, state));
    if (found === "not shown") {
      const wasMember = state.status === undefined || state.status === "accepted";
      return wasMember ? undefined : { id, state: state as Required<typeof state> };
    }
    return found && existing(tenant, state.email ?? found.email, found);
  },

  async update(connection, id, state, inputs) {
    const { tenant, userId: idOrEmail } = ids.split(id);
    const { client } = await connection.tenant(tenant);
    const accessExpiresAt = endToSend(inputs, state);
    const body = { role: inputs.role };
    const send = async (uid: string) => {
      await client.updateMember({ params: { tenant, uid }, body: { ...body, accessExpiresAt } });
      if (accessExpiresAt === undefined)
        return { expiresAt: state.expiresAt, expiryStatus: state.expiryStatus };
      // The response does not contain the member, so the member is read again.
      connection.namespaces.forget();
      const changed = (await usersIn(connection, tenant))?.find(({ id }) => id === uid);
      return endState(changed?.accessExpiresAt);
    };
    if (state.status === "accepted") {
      const isSame = inputs.role === state.role && accessExpiresAt === undefined;
      return isSame ? state : { ...state, ...body, ...(await send(idOrEmail)) };
    }
    // The preview showed these outputs as unchanged, so the update must keep their values. The next read returns the
    // new values.
    const promised = { userId: state.userId, accountEmail: state.accountEmail };
    const found = await lookUp(connection, tenant, ...matchersOf(idOrEmail, state));
    if (found && found !== "not shown") {
      // A change to the role does not renew an expired invitation, so an expired invitation must be sent again.
      if (found.status === "accepted" || (found.status === "invited" && !found.isSeparate)) {
        const newEnd = await send(found.id);
        return { ...toState(tenant, inputs.email, { ...found, ...body }), ...promised, ...newEnd };
      }
      // Services that list invitations separately reject a second invitation to the same user, and may not support
      // changes to an existing invitation. The existing invitation is therefore withdrawn first.
      if (found.isSeparate && found.status !== "declined") await withdraw(connection, tenant, found);
    }
    return { ...(await invite(connection, tenant, inputs)).state, ...promised };
  },

  async delete(connection, id, state) {
    const { tenant, userId: idOrEmail } = ids.split(id);
    if (state.status === "accepted") return removeUser(connection, tenant, idOrEmail);
    const found = await lookUp(connection, tenant, ...matchersOf(idOrEmail, state));
    if (found === "not shown") {
      throw new ResourceError("Member", {
        code: "incomplete_response",
        field: ["email"],
        detail: said`Cannot withdraw the invitation of ${state.email} to the namespace ${tenant}: the service does not return this invitation`,
        remedy: said`withdraw the invitation in the service's console, and remove the resource from the state`,
      });
    }
    if (!found || (found.isSeparate && found.status === "declined")) return;
    await (found.isSeparate ? withdraw(connection, tenant, found) : removeUser(connection, tenant, found.id));
  },
});

/** A person: a member or an invited user. */
interface Person extends LiveFacts {
  readonly id: string;
  readonly email: string;
  readonly role: string;
  readonly status: (typeof STATUSES)[number];
  readonly addedAt: string;
  /** The expiry time of the invitation. Empty if there is no invitation. */
  readonly expiresAt: string;
  /** The expiry time of the membership. Undefined if the membership does not expire. */
  readonly accessExpiresAt?: string | undefined;
  /** True if the service lists the person's invitation separately from members. */
  readonly isSeparate: boolean;
}

/**
 * Removes a user from a namespace. Waits until the removal is confirmed, either by the service's response or by a new
 * list of the members.
 */
async function removeUser(connection: Connection, tenant: string, uid: string): Promise<void> {
  const { client, listing } = await connection.tenant(tenant);
  let after: Namespace | undefined;
  const doubt = await doubtOf(client, async (witnessed) => {
    after = await witnessed.removeMember({ params: { tenant, uid } });
  });
  await requireAbsent("Member", `${tenant}/${uid}`, doubt, async () => {
    // Some servers respond with the namespace, which contains the remaining members.
    const left = after?.tenantId === tenant && after.members.length > 0 ? after.members : undefined;
    connection.namespaces.forget();
    listing(members).forget();
    return (left ?? (await usersIn(connection, tenant)) ?? []).some(({ id }) => id === uid);
  });
}

/**
 * Withdraws an invitation. Waits until the withdrawal is confirmed, either by the service's response or by a new list
 * of the invitations.
 */
async function withdraw(connection: Connection, tenant: string, { id }: Person): Promise<void> {
  const { client, listing } = await connection.tenant(tenant);
  await withdrawInvitation(client, tenant, id, async () => {
    listing(invitations).forget();
    const left = await invitedTo(connection, tenant);
    return left?.some((person) => person.id === id && person.status !== "declined") ?? true;
  });
}

interface People {
  readonly members: readonly Person[];
  /**
   * Returns the people whose invitations the service lists separately from members. Returns undefined if the service
   * does not return invitations.
   */
  invited(): Promise<readonly Person[] | undefined>;
}

/**
 * Returns true if the user has neither accepted nor declined the invitation. States that earlier versions wrote contain
 * the status `pending` for both open and expired invitations.
 */
const isUnanswered = ({ status }: { readonly status?: string }): boolean =>
  status === "invited" || status === "expired" || status === "pending";

function isExpired(state: Readonly<Record<"status" | "invitationExpiresAt", string>>, now: Date): boolean {
  if (!isUnanswered(state)) return false;
  const { invitationExpiresAt: end } = state;
  return state.status === "expired" || (end !== "" && new Date(end) < now);
}

/**
 * Sends an invitation, or creates the membership if the service adds members without an invitation. Does not fail if
 * the invitation was sent, but cannot be read afterwards.
 */
async function invite(
  connection: Connection,
  tenant: string,
  inputs: { readonly email: string; readonly role: z.output<typeof role>; readonly expiresAt?: string },
  idempotencyKey?: string,
) {
  const { client, listing } = await connection.tenant(tenant);
  const body = { email: inputs.email, role: inputs.role };
  const request = { params: { tenant }, body: { ...body, accessExpiresAt: endToSend(inputs) } };
  const namespace = await client.inviteMember(request, { idempotencyKey }).catch(async (error: unknown) => {
    // The service returns 404 if no account has the address, and also if the namespace does not exist.
    if (!isNotFound(error) || !(await connection.namespaces.isListed(tenant))) throw error;
    throw new ResourceError("Member", noAccount(inputs.email, client.url), { cause: error });
  });
  connection.namespaces.put(namespace);
  const member = namespace.members.find((entry) => hasEmail(entry, inputs.email));
  if (member) return existing(tenant, inputs.email, fromMember(member));
  listing(invitations).forget();
  const invited = await invitedTo(connection, tenant).catch((error: unknown) => {
    // The invitation was sent, but it cannot be read. The create must not fail, because the state would then not
    // contain the invitation. The next read finds the invitation.
    if (error instanceof RequestError) return undefined;
    throw error;
  });
  const sent = invited?.find((person) => person.status === "invited" && hasEmail(person, inputs.email));
  if (sent) return existing(tenant, inputs.email, sent);
  const addedAt = new Date().toISOString();
  const person = { ...body, id: "", status: "invited", addedAt, expiresAt: "", isSeparate: true } as const;
  return { id: `${tenant}/${inputs.email}`, state: toState(tenant, inputs.email, person) };
}

const noAccount = (email: string, url: string): ResourceFault => ({
  code: "object_not_found",
  field: ["email"],
  detail: said`No account on ${url} has the address ${email}`,
  remedy: said`check the address, or ask the operator of the service to create the account; then run again`,
});

/** Returns true if the e-mail address belongs to the person's account. The comparison ignores the letter case. */
export const hasEmail = (person: { readonly email: string }, email: string): boolean =>
  person.email.toLowerCase() === email.toLowerCase();

type Matcher = (person: Person) => boolean;

/**
 * Returns functions that recognize a person by id or e-mail address, the most reliable function first. An imported id
 * may contain an e-mail address, which cannot be mistaken for a user id. An unanswered invitation is also recognized by
 * its address, because the user may accept it with an account that has a different id.
 */
function matchersOf(
  idOrEmail: string,
  state: { readonly status?: string; readonly email?: string },
): Matcher[] {
  const { email } = state;
  const byEmail: Matcher[] =
    email !== undefined && state.status !== "accepted" ? [(person) => hasEmail(person, email)] : [];
  return [(person) => person.id === idOrEmail || hasEmail(person, idOrEmail), ...byEmail];
}

/**
 * Returns the member or invited user that a matcher accepts. Earlier matchers take precedence. Returns undefined for
 * the owner of the namespace, or if no person matches. Returns `"not shown"` if the person may be invited, but the
 * service does not return invited users.
 * @param ways the matchers, in order of precedence
 */
async function lookUp(
  connection: Connection,
  tenant: string,
  ...ways: readonly Matcher[]
): Promise<Person | "not shown" | undefined> {
  const people = await peopleOf(connection, tenant);
  if (!people) return undefined;
  const findIn = (persons: readonly Person[]) =>
    ways.map((matches) => persons.find(matches)).find((person) => person !== undefined);
  const member = findIn(people.members);
  if (member) return member.role === "owner" ? undefined : member;
  const invited = await people.invited();
  return invited ? findIn(invited) : "not shown";
}

/**
 * Returns the users who are members of a namespace, including its owner. Returns undefined if the namespace does not
 * exist.
 */
export async function usersIn(
  connection: Connection,
  tenant: string,
): Promise<readonly Member[] | undefined> {
  const namespace = await withMembers(connection, await connection.namespaces.find(tenant));
  return namespace && usersOf(await connection.tenant(tenant), namespace);
}

async function peopleOf(connection: Connection, tenant: string): Promise<People | undefined> {
  const members = await usersIn(connection, tenant);
  if (!members) return undefined;
  const isWhole = members.every(hasStatus);
  return {
    members: members.map(fromMember),
    invited: async () => (isWhole ? [] : invitedTo(connection, tenant)),
  };
}

/** Returns the newest invitation of each person. Omits withdrawn and accepted invitations. */
async function invitedTo(connection: Connection, tenant: string): Promise<Person[] | undefined> {
  const { listing } = await connection.tenant(tenant);
  try {
    const newest = new Map<string, Invitation>();
    for (const invitation of await listing(invitations).all()) {
      const { id } = invitation.user;
      if ((newest.get(id)?.createdAt ?? "") <= invitation.createdAt) newest.set(id, invitation);
    }
    return [...newest.values()].flatMap(fromInvitation);
  } catch (error) {
    if (isNotReturned(error)) return undefined;
    throw error;
  }
}

const invitedUntil = (expiresAt: string) => (new Date(expiresAt) < new Date() ? "expired" : "invited");

function fromMember(member: Member): Person {
  const { id, email, role, status, addedAt, expiresAt, accessExpiresAt, declaredBy, revision } = member;
  const isPending = status === "pending";
  return {
    id,
    email,
    role,
    addedAt,
    accessExpiresAt,
    declaredBy,
    revision,
    isSeparate: false,
    status: isPending ? invitedUntil(expiresAt) : "accepted",
    expiresAt: isPending ? expiresAt : "",
  };
}

function fromInvitation({ user, role, status, createdAt, expiresAt }: Invitation): Person[] {
  const person = { ...user, role, addedAt: createdAt, expiresAt, isSeparate: true };
  if (status === "pending") return [{ ...person, status: invitedUntil(expiresAt) }];
  return status === "rejected" ? [{ ...person, status: "declined" }] : [];
}

/**
 * Returns the namespace with its members. Newer services omit the members when they list namespaces.
 * @throws Error if the service does not return the members. Without this error, the provider would treat all members as
 *   removed
 */
async function withMembers(
  connection: Connection,
  listed: Namespace | undefined,
): Promise<Namespace | undefined> {
  // The owner of a namespace is always a member, so an empty list shows that the service has omitted the members. If
  // the server has access modes, the members are in a separate list and need not be read here.
  if (!listed || listed.members.length > 0 || sshAccessModeOf(listed) !== undefined) return listed;
  const { tenant, client } = await connection.tenant(listed.tenantId);
  const namespace = await client.getNamespace({ params: { tenant } });
  if (namespace.members.length === 0) {
    const detail = said`The service does not return the members of the namespace ${tenant}`;
    throw new ResourceError("Member", { code: "incomplete_response", field: ["tenant"], detail });
  }
  connection.namespaces.put(namespace);
  return namespace;
}

/** Returns the owner of a namespace as a listed object. No program declares the owner. */
export const listedOwner = (tenant: string, owner: Member): Listed =>
  listed(`${tenant}/${owner.id}`, owner.email, toState(tenant, owner.email, fromMember(owner)));

const existing = (tenant: string, declaredEmail: string, person: Person) => ({
  id: `${tenant}/${person.id}`,
  state: toState(tenant, declaredEmail, person),
  live: liveFacts(person),
});

function toState(tenant: string, declaredEmail: string, person: Person) {
  return {
    tenant,
    email: declaredEmail,
    // A service may have additional roles. The state then contains a role that no program can declare.
    role: person.role as z.output<typeof role>,
    userId: person.id,
    accountEmail: person.email,
    status: person.status,
    addedAt: person.addedAt,
    invitationExpiresAt: person.expiresAt,
    ...endState(person.accessExpiresAt),
  };
}
