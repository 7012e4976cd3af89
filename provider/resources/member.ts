import { RequestError } from "@gatehouse-access/sdk";
import { type Declaration, dateTime, email, ROLES } from "@gatehouse-access/sdk/contract";
import { z } from "zod";
import { ResourceError, said } from "../resourceError.ts";
import type { Connection } from "../service/connection.ts";
import { hasStatus, type Invitation, isNotTold, withdrawInvitation } from "../service/invitations.ts";
import type { Namespace } from "../service/listings.ts";
import { defineResource, IdForm, listed, output, required, tenantInput } from "./definition.ts";

const role = z.enum(ROLES).exclude(["owner"]);

const STATUSES = ["invited", "accepted", "expired", "declined"] as const;

const ids = new IdForm("Member", "tenant", "userId");

const isInvitation = ({ status }: Readonly<Record<string, unknown>>): boolean => status !== "accepted";

export const member = defineResource({
  name: "Member",
  description:
    "A user's membership of a namespace, or the invitation to it: if the service requires an invitation, it sends one, and the run continues. The owner is not a Member: ownership comes with the namespace.",
  id: ids,
  idNote:
    "an import may name the e-mail address instead; it stands in the id where a service does not tell the id of whom it invited, until a refresh finds it",
  inputs: {
    tenant: tenantInput,
    email: required(email, {
      description: "E-mail address of the user's account when the membership is made.",
      replaces: true,
      canonical: (address) => address.toLowerCase(),
      // The user changed the address, and the program follows: it is still the same user.
      sameAs: (state, address) => String(state.accountEmail).toLowerCase() === address,
    }),
    role: required(role, { description: "What the member may do: observer, operator or administrator." }),
  },
  outputs: {
    userId: output(z.string(), {
      description: "Id of the user; empty where the service does not tell that of an invited person.",
    }),
    accountEmail: output(z.string(), {
      description: "The account's address today; users may change theirs, which changes no membership.",
    }),
    status: output(z.enum(STATUSES), {
      description:
        "State of the invitation; `accepted` also if the service adds members without one. An expired one is sent again by the next run. One that was declined is not, unless the role changes or the resource is replaced.",
      mutable: isInvitation,
    }),
    addedAt: output(dateTime, {
      description: "When the membership was made, or the invitation sent.",
      mutable: isInvitation,
    }),
    expiresAt: output(z.string(), {
      description: "End of an invitation; empty without one, or where the service does not tell it.",
      mutable: isInvitation,
    }),
  },

  identity: {
    fields: ["tenant", "email"],
    ofInputs: ({ tenant, email }) => [{ key: `member ${tenant ?? ""} ${email}`, property: "email" }],
  },

  stale: (state, _inputs, now) => (isExpired(state, now) ? [{ field: "role", replaces: false }] : []),

  // What expired or was declined is in the way of no new invitation.
  async find(connection, inputs) {
    const { tenant } = await connection.tenant(inputs.tenant);
    const found = await lookUp(connection, tenant, (person) => hasEmail(person, inputs.email));
    if (!found || found === "not shown" || !["accepted", "invited"].includes(found.status)) return undefined;
    return existing(tenant, inputs.email, found);
  },

  async list(connection, tenant) {
    const people = await peopleOf(connection, tenant);
    const invited = (await people?.invited()) ?? [];
    return [...(people?.members ?? []), ...invited]
      .filter((person) => person.role !== "owner" && person.status !== "declined")
      .map((person) =>
        listed(
          `${tenant}/${person.id}`,
          person.email,
          () => toState(tenant, person.email, person),
          person.declaredBy,
        ),
      );
  },

  async create(connection, inputs, { idempotencyKey }) {
    const { tenant } = await connection.tenant(inputs.tenant);
    return invite(connection, tenant, inputs, idempotencyKey);
  },

  async read(connection, id, state) {
    const { tenant, userId: named } = ids.split(id);
    const found = await lookUp(connection, tenant, ...whoIs(named, state));
    if (found === "not shown") {
      const wasMember = state.status === undefined || state.status === "accepted";
      return wasMember ? undefined : { id, state: state as Required<typeof state> };
    }
    return found && existing(tenant, state.email ?? found.email, found);
  },

  async update(connection, id, state, inputs) {
    const { tenant, userId: named } = ids.split(id);
    const { client } = await connection.tenant(tenant);
    const body = { role: inputs.role };
    if (state.status === "accepted") {
      await client.updateMember({ params: { tenant, uid: named }, body });
      return { ...state, ...body };
    }
    // A preview promised that these stay; a read brings what has changed of them.
    const promised = { userId: state.userId, accountEmail: state.accountEmail };
    const found = await lookUp(connection, tenant, ...whoIs(named, state));
    if (found && found !== "not shown") {
      // An expired invitation is sent again: a change of role alone would leave it expired.
      if (found.status === "accepted" || (found.status === "invited" && !found.isApart)) {
        await client.updateMember({ params: { tenant, uid: found.id }, body });
        return { ...toState(tenant, inputs.email, { ...found, ...body }), ...promised };
      }
      // Services that keep invitations apart refuse a second one, and are not known to change one.
      if (found.isApart && found.status !== "declined") await withdrawInvitation(client, tenant, found.id);
    }
    return { ...(await invite(connection, tenant, inputs)).state, ...promised };
  },

  async delete(connection, id, state) {
    const { tenant, userId: named } = ids.split(id);
    const { client } = await connection.tenant(tenant);
    if (state.status === "accepted") {
      await client.removeMember({ params: { tenant, uid: named } });
      return;
    }
    const found = await lookUp(connection, tenant, ...whoIs(named, state));
    if (found === "not shown") {
      throw new ResourceError("Member", {
        code: "incomplete_answer",
        field: ["email"],
        detail: said`the service does not show the invitation of ${state.email} to the namespace ${tenant}, so it cannot be withdrawn`,
        remedy: said`withdraw it in the service's console, and remove the resource from the state`,
      });
    }
    if (!found || (found.isApart && found.status === "declined")) return;
    if (found.isApart) await withdrawInvitation(client, tenant, found.id);
    else await client.removeMember({ params: { tenant, uid: found.id } });
  },
});

/** A member, or somebody who was invited. */
interface Person {
  readonly id: string;
  readonly email: string;
  readonly role: string;
  readonly status: (typeof STATUSES)[number];
  readonly addedAt: string;
  readonly expiresAt: string;
  /** True for an invitation that the service keeps apart from its members. */
  readonly isApart: boolean;
  /** The resource that declared the membership or the invitation last, by what the service was told. */
  readonly declaredBy?: Declaration | undefined;
}

interface People {
  readonly members: readonly Person[];
  /** Invitations beside the members; undefined where the service has them and does not show them. */
  invited(): Promise<readonly Person[] | undefined>;
}

/** States of earlier versions say `pending`, whether the invitation has expired or not. */
const isUnanswered = ({ status }: { readonly status?: string }): boolean =>
  status === "invited" || status === "expired" || status === "pending";

function isExpired(state: { readonly status: string; readonly expiresAt: string }, now: Date): boolean {
  if (!isUnanswered(state)) return false;
  return state.status === "expired" || (state.expiresAt !== "" && new Date(state.expiresAt) < now);
}

/** Sends the invitation, or makes the membership. Once it was sent, no failure to read it back is an error. */
async function invite(
  connection: Connection,
  tenant: string,
  inputs: { readonly email: string; readonly role: z.output<typeof role> },
  idempotencyKey?: string,
) {
  const { client, invitations } = await connection.tenant(tenant);
  const body = { email: inputs.email, role: inputs.role };
  const namespace = await client.inviteMember({ params: { tenant }, body }, { idempotencyKey });
  connection.namespaces.put(namespace);
  const member = namespace.members.find((entry) => hasEmail(entry, inputs.email));
  if (member) return existing(tenant, inputs.email, fromMember(member));
  invitations.forget();
  const invited = await invitedTo(connection, tenant).catch((error: unknown) => {
    // The invitation is on its way: a failed run would leave it behind. The next read finds it.
    if (error instanceof RequestError) return undefined;
    throw error;
  });
  const sent = invited?.find((person) => person.status === "invited" && hasEmail(person, inputs.email));
  if (sent) return existing(tenant, inputs.email, sent);
  const addedAt = new Date().toISOString();
  const person = { ...body, id: "", status: "invited", addedAt, expiresAt: "", isApart: true } as const;
  return { id: `${tenant}/${inputs.email}`, state: toState(tenant, inputs.email, person) };
}

const hasEmail = (person: { readonly email: string }, email: string) =>
  person.email.toLowerCase() === email.toLowerCase();

type IsMeant = (person: Person) => boolean;

/**
 * How to tell the person of an id, the surest way first. An import may name an e-mail address; no user id looks like
 * one. Whoever has not answered is still the one with the address, if an account of another id came of the invitation.
 */
function whoIs(named: string, state: { readonly status?: string; readonly email?: string }): IsMeant[] {
  const { email } = state;
  const byEmail: IsMeant[] =
    email !== undefined && state.status !== "accepted" ? [(person) => hasEmail(person, email)] : [];
  return [(person) => person.id === named || hasEmail(person, named), ...byEmail];
}

/** The person, unless it is the owner; "not shown" where the service does not show who is invited. */
async function lookUp(
  connection: Connection,
  tenant: string,
  ...ways: readonly IsMeant[]
): Promise<Person | "not shown" | undefined> {
  const people = await peopleOf(connection, tenant);
  if (!people) return undefined;
  const among = (persons: readonly Person[]) =>
    ways.map((isMeant) => persons.find(isMeant)).find((person) => person !== undefined);
  const member = among(people.members);
  if (member) return member.role === "owner" ? undefined : member;
  const invited = await people.invited();
  return invited ? among(invited) : "not shown";
}

async function peopleOf(connection: Connection, tenant: string): Promise<People | undefined> {
  const namespace = await withMembers(connection, await connection.namespaces.find(tenant));
  if (!namespace) return undefined;
  const isWhole = namespace.members.every(hasStatus);
  return {
    members: namespace.members.map(fromMember),
    invited: async () => (isWhole ? [] : invitedTo(connection, tenant)),
  };
}

/** The newest invitation of each person, without those that somebody withdrew or that led to a membership. */
async function invitedTo(connection: Connection, tenant: string): Promise<Person[] | undefined> {
  const { invitations } = await connection.tenant(tenant);
  try {
    const newest = new Map<string, Invitation>();
    for (const invitation of await invitations.all()) {
      const { id } = invitation.user;
      if ((newest.get(id)?.createdAt ?? "") <= invitation.createdAt) newest.set(id, invitation);
    }
    return [...newest.values()].flatMap(fromInvitation);
  } catch (error) {
    if (isNotTold(error)) return undefined;
    throw error;
  }
}

const invitedUntil = (expiresAt: string) => (new Date(expiresAt) < new Date() ? "expired" : "invited");

function fromMember(member: Namespace["members"][number]): Person {
  const { id, email, role, status, addedAt, expiresAt, declaredBy } = member;
  const isPending = status === "pending";
  return {
    ...{ id, email, role, addedAt, declaredBy, isApart: false },
    status: isPending ? invitedUntil(expiresAt) : "accepted",
    expiresAt: isPending ? expiresAt : "",
  };
}

function fromInvitation({ user, role, status, createdAt, expiresAt }: Invitation): Person[] {
  const person = { ...user, role, addedAt: createdAt, expiresAt, isApart: true };
  if (status === "pending") return [{ ...person, status: invitedUntil(expiresAt) }];
  return status === "rejected" ? [{ ...person, status: "declined" }] : [];
}

/**
 * The namespace with its members, which lists of newer services leave out.
 * @throws Error when the service does not say who they are, so that nobody counts as removed
 */
async function withMembers(
  connection: Connection,
  listed: Namespace | undefined,
): Promise<Namespace | undefined> {
  // Every namespace has its owner as a member.
  if (!listed || listed.members.length > 0) return listed;
  const { tenant, client } = await connection.tenant(listed.tenantId);
  const namespace = await client.getNamespace({ params: { tenant } });
  if (namespace.members.length === 0) {
    const detail = said`the service does not say who the members of the namespace ${tenant} are`;
    throw new ResourceError("Member", { code: "incomplete_answer", field: ["tenant"], detail });
  }
  connection.namespaces.put(namespace);
  return namespace;
}

const existing = (tenant: string, declaredEmail: string, person: Person) => ({
  id: `${tenant}/${person.id}`,
  state: toState(tenant, declaredEmail, person),
});

function toState(tenant: string, declaredEmail: string, person: Person) {
  return {
    tenant,
    email: declaredEmail,
    role: role.parse(person.role),
    userId: person.id,
    accountEmail: person.email,
    status: person.status,
    addedAt: person.addedAt,
    expiresAt: person.expiresAt,
  };
}
