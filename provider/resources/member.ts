import { type Client, isNotFound } from "@gatehouse-access/sdk";
import { dateTime, email, ROLES, userId } from "@gatehouse-access/sdk/contract";
import { z } from "zod";
import { defineResource, output, required } from "./definition.ts";
import { tenantInput } from "./fields.ts";
import { splitId } from "./ids.ts";

type Wire = Awaited<ReturnType<Client["getNamespace"]>>["members"][number];

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

  stale: (state, now) => (isExpired(state, now) ? ["role"] : []),

  async create(connection, inputs) {
    const { tenant, client } = await connection.tenant(inputs.tenant);
    return invite(client, tenant, inputs);
  },

  async read(connection, id, state) {
    const { tenant, userId } = splitId(id, "Member", "tenant", "userId");
    const wire = await findMember(connection.client, tenant, (entry) => entry.id === userId);
    if (!wire || wire.role === "owner") return undefined;
    return { id, state: toState(tenant, state.email ?? wire.email, wire) };
  },

  async update(connection, id, state, inputs) {
    const { tenant, userId } = splitId(id, "Member", "tenant", "userId");
    const { client } = await connection.tenant(tenant);
    // Only an invitation sent again gets a new end; a change of role would leave it expired.
    if (isExpired(state, new Date())) return (await invite(client, tenant, inputs)).state;
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
  client: Client,
  tenant: string,
  inputs: { email: string; role: z.output<typeof role> },
) {
  const body = { email: inputs.email, role: inputs.role };
  const { members } = await client.inviteMember({ params: { tenant }, body });
  const wire = members.find((entry) => entry.email.toLowerCase() === inputs.email);
  if (!wire) {
    throw new Error(`Member.email: the service took ${inputs.email} but does not list it as a member`);
  }
  return { id: `${tenant}/${wire.id}`, state: toState(tenant, inputs.email, wire) };
}

async function findMember(
  client: Client,
  tenant: string,
  matches: (entry: Wire) => boolean,
): Promise<Wire | undefined> {
  try {
    return (await client.getNamespace({ params: { tenant } })).members.find(matches);
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
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
