import type { Client } from "@gatehouse-access/sdk";
import { dateTime, email, ROLES, userId } from "@gatehouse-access/sdk/contract";
import { z } from "zod";
import type { Connection } from "./connection.ts";
import { defineResource, output, required } from "./definition.ts";
import { tenantInput } from "./fields.ts";
import { splitId } from "./ids.ts";
import type { Namespace } from "./listings.ts";

type Wire = Namespace["members"][number];

const role = z.enum(ROLES).exclude(["owner"]);

export const member = defineResource({
  name: "Member",
  description:
    "A user's membership of a namespace. The owner is not a Member: ownership comes with the namespace.",
  idFormat: "tenant/userId",
  inputs: {
    tenant: tenantInput,
    email: required(email, {
      description: "E-mail address of the user's account when the membership is made.",
      replaces: true,
      canonical: (address) => address.toLowerCase(),
      // The user changed it, and the program follows: still the same user.
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
    }),
    addedAt: output(dateTime, { description: "When the membership was made." }),
    expiresAt: output(z.string(), { description: "End of a pending invitation; empty without one." }),
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

  async create(connection, inputs, { idempotencyKey }) {
    const { tenant, client } = await connection.tenant(inputs.tenant);
    return invite(connection, client, tenant, inputs, idempotencyKey);
  },

  async read(connection, id, state) {
    const { tenant, userId } = splitId(id, "Member", "tenant", "userId");
    // An import may name the user by e-mail address, which no user id looks like.
    const isMeant = (entry: Wire) => entry.id === userId || hasEmail(entry, userId);
    return findMember(connection, tenant, state.email, isMeant);
  },

  async update(connection, id, state, inputs) {
    const { tenant, userId } = splitId(id, "Member", "tenant", "userId");
    const { client } = await connection.tenant(tenant);
    // Only an invitation sent again gets a new end; a change of role would leave it expired.
    if (isExpired(state, new Date())) return (await invite(connection, client, tenant, inputs)).state;
    await client.updateMember({ params: { tenant, uid: userId }, body: { role: inputs.role } });
    return { ...state, role: inputs.role };
  },

  async delete(connection, id) {
    const { tenant, userId } = splitId(id, "Member", "tenant", "userId");
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
  const body = { email: inputs.email, role: inputs.role };
  const namespace = await client.inviteMember({ params: { tenant }, body }, { idempotencyKey });
  connection.namespaces.put(namespace);
  const wire = namespace.members.find((entry) => hasEmail(entry, inputs.email));
  if (!wire) {
    throw new Error(`Member.email: the service took ${inputs.email} but does not list it as a member`);
  }
  return { id: `${tenant}/${wire.id}`, state: toState(tenant, inputs.email, wire) };
}

const hasEmail = (entry: Wire, email: string) => entry.email.toLowerCase() === email.toLowerCase();

async function findMember(
  connection: Connection,
  tenant: string,
  declaredEmail: string | undefined,
  isMeant: (entry: Wire) => boolean,
) {
  const namespace = await connection.namespaces.find(tenant);
  const wire = namespace?.members.find(isMeant);
  if (!wire || wire.role === "owner") return undefined;
  return { id: `${tenant}/${wire.id}`, state: toState(tenant, declaredEmail ?? wire.email, wire) };
}

function toState(tenant: string, declaredEmail: string, wire: Wire) {
  return {
    tenant,
    email: declaredEmail,
    role: role.parse(wire.role),
    userId: wire.id,
    accountEmail: wire.email,
    status: wire.status,
    addedAt: wire.addedAt,
    expiresAt: wire.status === "pending" ? wire.expiresAt : "",
  };
}
