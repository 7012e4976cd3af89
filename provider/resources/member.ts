import type { Client } from "@gatehouse-access/sdk";
import { dateTime, email, ROLES, userId } from "@gatehouse-access/sdk/contract";
import { z } from "zod";
import type { Connection } from "./connection.ts";
import { defineResource, listed, output, required } from "./definition.ts";
import { tenantInput } from "./fields.ts";
import { IdForm } from "./idForm.ts";
import type { Namespace } from "./listings.ts";
import { isNewer, releaseText } from "./release.ts";

type Wire = Namespace["members"][number];

const role = z.enum(ROLES).exclude(["owner"]);

const ids = new IdForm("Member", "tenant", "userId");

export const member = defineResource({
  name: "Member",
  description:
    "A user's membership of a namespace. The owner is not a Member: ownership comes with the namespace.",
  id: ids,
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
    userId: output(userId, { description: "Id of the user." }),
    accountEmail: output(z.string(), {
      description: "The account's address today; users may change theirs, which changes no membership.",
    }),
    status: output(z.enum(["accepted", "pending"]), {
      description: "pending until an invitation is accepted (cloud).",
      mutable: true,
    }),
    addedAt: output(dateTime, { description: "When the membership was made." }),
    expiresAt: output(z.string(), {
      description: "End of a pending invitation; empty without one.",
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
    return (namespace?.members ?? [])
      .filter((entry) => entry.role !== "owner")
      .map((entry) =>
        listed(`${tenant}/${entry.id}`, entry.email, () => toState(tenant, entry.email, entry)),
      );
  },

  async create(connection, inputs, { idempotencyKey }) {
    const { tenant, client } = await connection.tenant(inputs.tenant);
    return invite(connection, client, tenant, inputs, idempotencyKey);
  },

  async read(connection, id, state) {
    const { tenant, userId } = ids.split(id);
    // An import may name the user by e-mail address; no user id looks like one.
    const isMeant = (entry: Wire) => entry.id === userId || hasEmail(entry, userId);
    return findMember(connection, tenant, state.email, isMeant);
  },

  async update(connection, id, state, inputs) {
    const { tenant, userId } = ids.split(id);
    const { client } = await connection.tenant(tenant);
    // An expired invitation is sent again: a change of role alone would leave it expired.
    if (isExpired(state, new Date())) return (await invite(connection, client, tenant, inputs)).state;
    await client.updateMember({ params: { tenant, uid: userId }, body: { role: inputs.role } });
    return { ...state, role: inputs.role };
  },

  async delete(connection, id) {
    const { tenant, userId } = ids.split(id);
    const { client } = await connection.tenant(tenant);
    await client.removeMember({ params: { tenant, uid: userId } });
  },
});

function isExpired(state: { status: string; expiresAt: string }, now: Date): boolean {
  return state.status === "pending" && state.expiresAt !== "" && new Date(state.expiresAt) < now;
}

async function invite(
  connection: Connection,
  client: Client,
  tenant: string,
  inputs: { email: string; role: z.output<typeof role> },
  idempotencyKey?: string,
) {
  await requireAdding(connection, tenant, inputs.email);
  const body = { email: inputs.email, role: inputs.role };
  const namespace = await client.inviteMember({ params: { tenant }, body }, { idempotencyKey });
  connection.namespaces.put(namespace);
  const wire = namespace.members.find((entry) => hasEmail(entry, inputs.email));
  if (!wire) {
    throw new Error(
      `Member.email: the service took ${inputs.email} but does not list it as a member of the namespace ${tenant}. It may have sent an invitation, which is left behind there: withdraw it in the service's console, or have it accepted and declare the Member with adopt: true`,
    );
  }
  return { id: `${tenant}/${wire.id}`, state: toState(tenant, inputs.email, wire) };
}

/**
 * Refuses services that invite members instead of adding them: a run can neither wait for an invitation nor withdraw
 * it.
 * @throws Error saying how to become a member there
 */
async function requireAdding(connection: Connection, tenant: string, email: string): Promise<void> {
  const release = await connection.release();
  if (!release || !isNewer(release)) return;
  throw new Error(
    `Member.email: the service is ${releaseText(release)}, which invites members instead of adding them, so nothing was sent; invite ${email} to the namespace ${tenant} in the service's console, and once it is accepted declare the Member with adopt: true`,
  );
}

const hasEmail = (entry: Wire, email: string) => entry.email.toLowerCase() === email.toLowerCase();

async function findMember(
  connection: Connection,
  tenant: string,
  declaredEmail: string | undefined,
  isMeant: (entry: Wire) => boolean,
) {
  const namespace = await withMembers(connection, await connection.namespaces.find(tenant));
  const wire = namespace?.members.find(isMeant);
  if (!wire || wire.role === "owner") return undefined;
  return { id: `${tenant}/${wire.id}`, state: toState(tenant, declaredEmail ?? wire.email, wire) };
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
    // Newer services list only members who accepted.
    status: wire.status ?? "accepted",
    addedAt: wire.addedAt,
    expiresAt: wire.status === "pending" ? wire.expiresAt : "",
  };
}
