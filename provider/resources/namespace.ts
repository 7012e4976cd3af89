import { isDeepStrictEqual } from "node:util";
import { type Client, where } from "@gatehouse-access/sdk";
import { dateTime, namespaces, tenantId, userId } from "@gatehouse-access/sdk/contract";
import { z } from "zod";
import { ResourceError, said } from "../resourceError.ts";
import type { Connection } from "../service/connection.ts";
import type { Namespace as Wire } from "../service/listings.ts";
import {
  defineResource,
  IdForm,
  listed,
  optional,
  output,
  patternOn,
  required,
  UnfinishedError,
} from "./definition.ts";

const wireSettings = namespaces.editNamespace.body.shape.settings.unwrap().shape;
const wireRule = wireSettings.ssh_forwarding.unwrap().element.shape;

const forwardingRule = z.strictObject({
  login: patternOn(wireRule.login, "login").describe("Pattern (RE2) that must match the whole login name."),
  target: patternOn(wireRule.target, "device").describe(
    "Pattern (RE2) that must match the whole target, `host:port`; `[address]:port` for IPv6.",
  ),
});

const settings = z.strictObject({
  sessionRecord: wireSettings.session_record.describe("Record what happens in sessions."),
  connectionAnnouncement: wireSettings.connection_announcement.describe(
    "Text shown to clients when they connect, at most 4096 characters.",
  ),
  deviceProof: wireSettings.device_proof.describe(
    "Whether devices must prove their private key when they enroll and report.",
  ),
  sessionMaxMinutes: wireSettings.session_max_minutes.describe("Longest session, in minutes; 0: no limit."),
  sessionIdleMinutes: wireSettings.session_idle_minutes.describe(
    "Minutes without input or output after which a session ends; 0: no limit.",
  ),
  sessionRecordMode: wireSettings.session_record_mode.describe(
    "Which sessions are recorded: all shells and commands (all), the same without file transfers (default), or only terminals (terminals).",
  ),
  sessionRecordMegabytes: wireSettings.session_record_megabytes.describe(
    "Largest recording of a session, in MiB; 0: the limit of the server.",
  ),
  sshForwarding: z
    .array(forwardingRule)
    .max(namespaces.FORWARDING_RULES_MAX)
    .optional()
    .describe(
      "Logins that may forward connections through devices, and their targets: patterns `login` and `target` that must match the whole text. Empty: no forwarding.",
    ),
});

type Settings = z.output<typeof settings>;
type FullSettings = { [K in keyof Settings]-?: NonNullable<Settings[K]> };

const DEFAULT_SETTINGS: FullSettings = {
  sessionRecord: true,
  connectionAnnouncement: "",
  deviceProof: "optional",
  sessionMaxMinutes: 0,
  sessionIdleMinutes: 0,
  sessionRecordMode: "default",
  sessionRecordMegabytes: 0,
  sshForwarding: [],
};
const SETTING_NAMES = Object.keys(DEFAULT_SETTINGS) as (keyof FullSettings)[];

/** Settings that servers of 0.19 do not have. A service leaves out those that have their default. */
const isNew = (name: keyof FullSettings) => name !== "sessionRecord" && name !== "connectionAnnouncement";

/** All declared settings, with defaults for missing ones; forwarding rules as a sorted set. */
function settingsOf(given: Settings = {}): FullSettings {
  const all = Object.fromEntries(
    SETTING_NAMES.map((name) => [name, given[name] ?? DEFAULT_SETTINGS[name]]),
  ) as FullSettings;
  const rules = new Map(all.sshForwarding.map((rule) => [JSON.stringify([rule.login, rule.target]), rule]));
  const sshForwarding = [...rules].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, rule]) => rule);
  return { ...all, sshForwarding };
}

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
    settings: optional(settings, {
      description: "Settings of the namespace.",
      default: DEFAULT_SETTINGS,
      canonical: settingsOf,
    }),
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
    const state = toState(made, inputs.forceDestroy);
    if (sameSettings(state.settings, inputs.settings)) return { id: made.tenantId, state };
    try {
      const { client } = await connection.tenant(made.tenantId);
      return { id: made.tenantId, state: await edit(client, made.tenantId, inputs, state.settings) };
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
    return edit(client, id, inputs, state.settings);
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

const sameSettings = (left: Settings | undefined, right: Settings | undefined) =>
  isDeepStrictEqual(settingsOf(left), settingsOf(right));

/**
 * Changes name and settings. New settings are sent only if they are not the default, or if they differ from `before`.
 * @param before the settings as last read
 * @throws ResourceError naming a setting that the service ignored
 */
async function edit(
  client: Client,
  tenant: string,
  inputs: { name: string; settings?: Settings; forceDestroy?: boolean },
  before: Settings,
): Promise<ReturnType<typeof toState>> {
  const wanted = settingsOf(inputs.settings);
  const known = settingsOf(before);
  const differs = (name: keyof FullSettings, from: FullSettings) =>
    !isDeepStrictEqual(wanted[name], from[name]);
  const sent = SETTING_NAMES.filter(
    (name) => !isNew(name) || differs(name, DEFAULT_SETTINGS) || differs(name, known),
  );
  const body = { name: inputs.name, settings: Object.fromEntries(sent.map((name) => [name, wanted[name]])) };
  const after = toState(await client.editNamespace({ params: { tenant }, body }), inputs.forceDestroy);
  const missed = SETTING_NAMES.filter((name) => isNew(name) && differs(name, after.settings));
  const ignored = missed.find((name) => sent.includes(name));
  if (ignored !== undefined) {
    throw new ResourceError("Namespace", {
      code: "unsupported_change",
      field: ["settings", ignored],
      detail: said`the service ignored this setting, because it does not support it`,
      remedy: said`remove the setting, or upgrade the service`,
    });
  }
  // Settings that are not sent may have changed since `before` was read.
  return missed.length > 0 ? edit(client, tenant, inputs, after.settings) : after;
}

async function refuseWithDevices(connection: Connection, tenant: string): Promise<void> {
  const { client } = await connection.tenant(tenant);
  const { value } = await client.pages("getDevices", { query: { perPage: 1 } }).next();
  const { items = [], total = items.length } = value ?? {};
  if (items.length > 0) {
    const force = { field: "forceDestroy", value: true };
    throw new ResourceError("Namespace", {
      code: "unsupported_change",
      field: ["forceDestroy"],
      detail: said`the namespace has ${total} devices, so it is not deleted`,
      remedy: said`remove them, or set ${force} and apply that first`,
    });
  }
}

function toState(wire: Wire, forceDestroy: boolean | undefined) {
  return {
    name: wire.name,
    settings: settingsOf(wire.settings),
    forceDestroy: forceDestroy ?? false,
    tenant: wire.tenantId,
    owner: wire.owner,
    createdAt: wire.createdAt,
    maxDevices: wire.maxDevices,
    // Servers of 0.19 have only the other spelling.
    deviceCount: wire.deviceCount ?? wire.devicesCount,
  };
}
