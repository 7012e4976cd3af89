import { type Client, where } from "@gatehouse-access/sdk";
import { dateTime, namespaces, tenantId, userId } from "@gatehouse-access/sdk/contract";
import { z } from "zod";
import type { Connection } from "./connection.ts";
import { defineResource, listed, optional, output, required, UnfinishedError } from "./definition.ts";
import { IdForm } from "./idForm.ts";
import type { Namespace as Wire } from "./listings.ts";
import { ResourceError, said } from "./resourceError.ts";

const wireSettings = namespaces.editNamespace.body.shape.settings.unwrap().shape;

const settings = z.strictObject({
  sessionRecord: wireSettings.session_record.describe("Record what happens in sessions."),
  connectionAnnouncement: wireSettings.connection_announcement.describe(
    "Text shown to whoever connects, at most 4096 characters.",
  ),
});

const DEFAULT_SETTINGS = { sessionRecord: true, connectionAnnouncement: "" };

export const namespace = defineResource({
  name: "Namespace",
  description:
    "A tenant of the service: its members, keys and devices live in it. Made by a user, who owns it.",
  id: new IdForm("Namespace", "tenant"),
  idNote: "an import also takes the name",
  inputs: {
    name: required(namespaces.namespaceName, {
      description: "Name, unique on the service: one host-name label, stored in lower case.",
      canonical: (name) => name.toLowerCase(),
    }),
    settings: optional(settings, { description: "Settings of the namespace.", default: DEFAULT_SETTINGS }),
    forceDestroy: optional(z.boolean(), {
      description: "Delete the namespace although it has devices.",
      default: false,
    }),
  },
  outputs: {
    tenant: output(tenantId, { description: "Id of the namespace.", isId: true }),
    owner: output(userId, { description: "Id of the user who owns it." }),
    createdAt: output(dateTime, { description: "When it was made." }),
    maxDevices: output(z.int(), { description: "How many devices may be accepted; -1: no limit." }),
    deviceCount: output(z.int(), {
      description:
        "Accepted devices when the resource was created, or last read after a change made elsewhere.",
      volatile: true,
    }),
  },

  identity: {
    fields: ["name"],
    ofInputs: ({ name }) => [{ key: `namespace ${name}`, property: "name" }],
  },

  async find({ client }, inputs) {
    const found = await byName(client, inputs.name);
    return found && { id: found.tenantId, state: toState(found, inputs.forceDestroy) };
  },

  async create(connection, inputs, { idempotencyKey }) {
    const body = { name: inputs.name };
    // Settled before this namespace is made: the one of resources that name none must not depend on it.
    await connection.home().catch(() => undefined);
    const made = await connection.client.createNamespace({ body }, { idempotencyKey });
    connection.namespaces.put(made);
    const wanted = inputs.settings ?? DEFAULT_SETTINGS;
    const state = toState(made, inputs.forceDestroy);
    if (sameSettings(state.settings, wanted)) return { id: made.tenantId, state };
    try {
      const { client } = await connection.tenant(made.tenantId);
      return { id: made.tenantId, state: await edit(client, made.tenantId, inputs) };
    } catch (error) {
      throw new UnfinishedError(made.tenantId, state, error);
    }
  },

  async list({ namespaces }, tenant) {
    const found = await namespaces.find(tenant);
    return found ? [listed(tenant, found.name, () => toState(found, false), found.declaredBy)] : [];
  },

  async read({ client, namespaces }, id, state) {
    // An import may give the name instead of the id.
    const isId = tenantId.safeParse(id).success;
    const found = isId ? await namespaces.find(id) : await byName(client, id.toLowerCase());
    return found && { id: found.tenantId, state: toState(found, state.forceDestroy) };
  },

  async update(connection, id, state, inputs) {
    const nothingSent = state.name === inputs.name && sameSettings(state.settings, inputs.settings);
    if (nothingSent) return { ...state, forceDestroy: inputs.forceDestroy ?? false };
    const { client } = await connection.tenant(id);
    return edit(client, id, inputs);
  },

  async delete(connection, id, state) {
    const { client } = await connection.tenant(id);
    if (!state.forceDestroy) await refuseWithDevices(connection, id);
    await client.deleteNamespace({ params: { tenant: id } });
  },
});

async function byName(client: Client, name: string): Promise<Wire | undefined> {
  const query = { filter: where("name").eq(name), perPage: 100 };
  for await (const found of client.iterate("getNamespaces", { query })) if (found.name === name) return found;
  return undefined;
}

type Settings = Partial<z.output<typeof settings>>;

function sameSettings(left: Settings | undefined, right: Settings | undefined): boolean {
  const [a, b] = [
    { ...DEFAULT_SETTINGS, ...left },
    { ...DEFAULT_SETTINGS, ...right },
  ];
  return a.sessionRecord === b.sessionRecord && a.connectionAnnouncement === b.connectionAnnouncement;
}

async function edit(
  client: Client,
  tenant: string,
  inputs: { name: string; settings?: Settings; forceDestroy?: boolean },
) {
  const body = { name: inputs.name, settings: inputs.settings };
  return toState(await client.editNamespace({ params: { tenant }, body }), inputs.forceDestroy);
}

async function refuseWithDevices(connection: Connection, tenant: string): Promise<void> {
  const { client } = await connection.tenant(tenant);
  const { value } = await client.pages("getDevices", { query: { perPage: 1 } }).next();
  const { items = [], total = items.length } = value ?? {};
  if (items.length > 0) {
    const force = { field: "forceDestroy", value: true };
    const message = said`the namespace has ${total} devices, so it is not deleted; remove them, or set ${force} and apply that first`;
    throw new ResourceError("Namespace", "forceDestroy", message);
  }
}

function toState(wire: Wire, forceDestroy: boolean | undefined) {
  return {
    name: wire.name,
    settings: {
      sessionRecord: wire.settings.sessionRecord,
      connectionAnnouncement: wire.settings.connectionAnnouncement,
    },
    forceDestroy: forceDestroy ?? false,
    tenant: wire.tenantId,
    owner: wire.owner,
    createdAt: wire.createdAt,
    maxDevices: wire.maxDevices,
    // Servers of 0.19 have only the other spelling.
    deviceCount: wire.deviceCount ?? wire.devicesCount,
  };
}
