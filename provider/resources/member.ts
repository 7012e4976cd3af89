import type { Client } from "@gatehouse-access/sdk";
import { dateTime, email, ROLES, userId } from "@gatehouse-access/sdk/contract";
import { z } from "zod";
import type { Connection } from "./connection.ts";
import { defineResource, type Existing, listed, output, required } from "./definition.ts";
import { tenantInput } from "./fields.ts";
import { IdForm } from "./idForm.ts";
import { type Invitation, invitationsOf, invitesMembers, withdraw } from "./invitations.ts";
import type { Namespace } from "./listings.ts";

type Wire = Namespace["members"][number];

const role = z.enum(ROLES).exclude(["owner"]);

const ids = new IdForm("Member", "tenant", "userId");

export const member = defineResource({
  name: "Member",
  description:
    "A user's membership of a namespace. Where a service asks people first, creating it sends an invitation, which is a membership once it is accepted. The owner is not a Member: ownership comes with the namespace.",
  id: ids,
  idNote: "an import also takes the e-mail address in place of the user's id",
  inputs: {
    tenant: tenantInput,
    email: required(email, {
      description:
        "E-mail address of the user's account when the membership is made, or that the invitation goes to.",
      replaces: true,
      canonical: (address) => address.toLowerCase(),
      // The user changed the address, and the program follows: it is still the same user.
      sameAs: (state, address) => String(state.accountEmail).toLowerCase() === address,
    }),
    role: required(role, { description: "What the member may do: observer, operator or administrator." }),
  },
  outputs: {
    userId: output(userId, { description: "Id of the user." }),
    accountEmail: output(z.string(), {
      description: "The account's address today; users may change theirs, which changes no membership.",
    }),
    status: output(z.enum(["invited", "accepted", "expired", "declined"]), {
      description:
        "accepted: a member. invited: asked, and not answered yet. expired: the next up asks again. declined: another role, or a replacement, asks again.",
      mutable: true,
    }),
    addedAt: output(z.union([dateTime, z.literal("")]), {
      description:
        "When the membership was made, or the invitation sent; empty where the service does not say.",
    }),
    expiresAt: output(z.string(), {
      description:
        "End of an invitation that was not accepted; empty without one, or where the service does not say.",
      mutable: true,
    }),
  },

  identity: {
    fields: ["tenant", "email"],
    ofInputs: ({ tenant, email }) => [{ key: `member ${tenant ?? ""} ${email}`, property: "email" }],
  },

  stale: (state, _inputs, now) => (isExpired(state, now) ? [{ field: "role", replaces: false }] : []),

  async find(connection, inputs) {
    const { tenant } = await connection.tenant(inputs.tenant);
    return findMember(connection, tenant, inputs.email, (entry) => hasEmail(entry, inputs.email));
  },

  async list(connection, tenant) {
    const namespace = await withMembers(connection, await connection.namespaces.find(tenant));
    const members = (namespace?.members ?? [])
      .filter((entry) => entry.role !== "owner")
      .map((entry) =>
        listed(`${tenant}/${entry.id}`, entry.email, () => toState(tenant, entry.email, entry)),
      );
    const invited = await invitationsIn(connection, tenant);
    return [
      ...members,
      ...invited
        .filter(({ userId }) => members.every(({ id }) => id !== `${tenant}/${userId}`))
        .map((one) =>
          listed(`${tenant}/${one.userId}`, one.email, () => invitedState(tenant, one.email, one)),
        ),
    ];
  },

  async create(connection, inputs, { idempotencyKey }) {
    const { tenant, client } = await connection.tenant(inputs.tenant);
    return invite(connection, client, tenant, inputs, idempotencyKey);
  },

  async read(connection, id, state) {
    const { tenant, userId } = ids.split(id);
    // An import may name the user by e-mail address; no user id looks like one.
    const isMeant = (entry: Person) => entry.id === userId || hasEmail(entry, userId);
    const found = await findMember(connection, tenant, state.email, isMeant);
    if (found) return found;
    // Nobody lists this invitation: nothing tells it from one that is gone.
    return isUnlisted(state) && !(await invitesMembers(connection))
      ? { id, state: state as MemberState }
      : undefined;
  },

  async update(connection, id, state, inputs) {
    const { tenant, userId } = ids.split(id);
    const { client } = await connection.tenant(tenant);
    if (state.status === "accepted" || !(await invitesMembers(connection))) {
      // An expired invitation is sent again: a change of role alone would leave it expired.
      if (isExpired(state, new Date())) return (await invite(connection, client, tenant, inputs)).state;
      await client.updateMember({ params: { tenant, uid: userId }, body: { role: inputs.role } });
      return { ...state, role: inputs.role };
    }
    // There an invitation keeps its role and its end.
    await withdraw(client, tenant, userId);
    return (await invite(connection, client, tenant, inputs)).state;
  },

  async delete(connection, id, state) {
    const { tenant, userId } = ids.split(id);
    const { client } = await connection.tenant(tenant);
    if (state.status !== "accepted" && (await invitesMembers(connection))) {
      await withdraw(client, tenant, userId);
      // Meanwhile it may have been accepted.
      const namespace = await client.getNamespace({ params: { tenant } });
      if (namespace.members.every((entry) => entry.id !== userId)) return;
    }
    await client.removeMember({ params: { tenant, uid: userId } });
  },
});

type MemberState = ReturnType<typeof toState>;

/** Who an entry of a list is. */
type Person = Pick<Wire, "id" | "email">;

// States of former releases call an open invitation pending.
function isExpired({ status, expiresAt }: { status: string; expiresAt: string }, now: Date): boolean {
  return status === "expired" || (status !== "accepted" && expiresAt !== "" && new Date(expiresAt) < now);
}

/** True for an invitation whose user the service did not name. */
const isUnlisted = ({ status, userId }: { status?: string; userId?: string }): boolean =>
  status === "invited" && userId === "";

async function invite(
  connection: Connection,
  client: Client,
  tenant: string,
  inputs: { email: string; role: z.output<typeof role> },
  idempotencyKey?: string,
): Promise<Existing<MemberState>> {
  const body = { email: inputs.email, role: inputs.role };
  const namespace = await client.inviteMember({ params: { tenant }, body }, { idempotencyKey });
  const wire = namespace.members.find((entry) => hasEmail(entry, inputs.email));
  if (wire) {
    connection.namespaces.put(namespace);
    return { id: `${tenant}/${wire.id}`, state: toState(tenant, inputs.email, wire) };
  }
  // The service took it, so that somebody was asked: whatever it tells of that, the state must have it.
  const open = await invitationsIn(connection, tenant);
  const found = open.find((one) => hasEmail({ ...one, id: one.userId }, inputs.email));
  if (found) return { id: `${tenant}/${found.userId}`, state: invitedState(tenant, inputs.email, found) };
  const unlisted = {
    userId: "",
    accountEmail: inputs.email,
    status: "invited",
    addedAt: "",
    expiresAt: "",
  } as const;
  return { id: `${tenant}/${inputs.email}`, state: { tenant, ...body, ...unlisted } };
}

const hasEmail = (entry: Person, email: string) => entry.email.toLowerCase() === email.toLowerCase();

/** The invitations that nobody accepted yet; none where a service lists them among the members. */
async function invitationsIn(connection: Connection, tenant: string): Promise<Invitation[]> {
  if (!(await invitesMembers(connection))) return [];
  const { client } = await connection.tenant(tenant);
  return invitationsOf(client, tenant, new Date());
}

async function findMember(
  connection: Connection,
  tenant: string,
  declaredEmail: string | undefined,
  isMeant: (entry: Person) => boolean,
) {
  const namespace = await withMembers(connection, await connection.namespaces.find(tenant));
  const wire = namespace?.members.find(isMeant);
  if (wire?.role === "owner" || !namespace) return undefined;
  if (wire) return { id: `${tenant}/${wire.id}`, state: toState(tenant, declaredEmail ?? wire.email, wire) };
  const open = await invitationsIn(connection, tenant);
  const found = open.find((one) => isMeant({ ...one, id: one.userId }));
  return (
    found && {
      id: `${tenant}/${found.userId}`,
      state: invitedState(tenant, declaredEmail ?? found.email, found),
    }
  );
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
    throw new Error(`Member.tenant: the service does not say who the members of the namespace ${tenant} are`);
  }
  connection.namespaces.put(namespace);
  return namespace;
}

function toState(tenant: string, declaredEmail: string, wire: Wire) {
  return {
    tenant,
    email: declaredEmail,
    role: role.parse(wire.role),
    userId: wire.id,
    accountEmail: wire.email,
    status: statusOf(wire),
    addedAt: wire.addedAt,
    expiresAt: wire.status === "pending" ? wire.expiresAt : "",
  };
}

/** Newer services list only members who accepted, and say nothing of it. */
function statusOf({ status, expiresAt }: Wire): "invited" | "accepted" | "expired" | "declined" {
  if (status !== "pending") return "accepted";
  return isExpired({ status, expiresAt }, new Date()) ? "expired" : "invited";
}

function invitedState(tenant: string, declaredEmail: string, invitation: Invitation): MemberState {
  const { userId, email: accountEmail, status, createdAt, expiresAt } = invitation;
  return {
    ...{
      tenant,
      email: declaredEmail,
      role: role.parse(invitation.role),
      userId,
      accountEmail,
      status,
      expiresAt,
    },
    addedAt: createdAt,
  };
}
