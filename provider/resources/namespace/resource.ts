import { isDeepStrictEqual } from "node:util";
import {
  acceptedDevicesOf,
  type Client,
  isLegacyModeAllowed,
  type SshAccessMode,
  setSshAccessMode,
  sshAccessModeOf,
  where,
} from "@gatehouse-access/sdk";
import { dateTime, namespaces, tenantId, userId } from "@gatehouse-access/sdk/contract";
import { z } from "zod";
import { type Adopt, defineResource } from "../../model/defineResource.ts";
import { listed, liveFacts } from "../../model/definition.ts";
import { patternOn } from "../../model/deviceFilter.ts";
import { optional, output, required } from "../../model/fields.ts";
import { EXAMPLE_TENANT, IdForm } from "../../model/idForm.ts";
import { UnfinishedError } from "../../model/unfinishedError.ts";
import { ResourceError, said } from "../../resourceError.ts";
import type { Connection } from "../../service/connection.ts";
import type { Namespace as Wire } from "../../service/listings.ts";

const wireSettings = namespaces.editNamespace.body.shape.settings.unwrap().shape;
const wireRule = wireSettings.ssh_forwarding.unwrap().element.shape;

const forwardingRule = z.strictObject({
  login: patternOn(wireRule.login, "login").describe("An RE2 pattern that must match the whole login name."),
  target: patternOn(wireRule.target, "device").describe(
    "An RE2 pattern that must match the whole target. Targets have the form `host:port`, or `[address]:port` for IPv6.",
  ),
});

const settings = z.strictObject({
  sessionRecord: wireSettings.session_record.describe("Whether to record sessions."),
  connectionAnnouncement: wireSettings.connection_announcement.describe(
    "The text that clients see when they connect. Must be at most 4096 characters long.",
  ),
  deviceProof: wireSettings.device_proof.describe(
    "Whether devices must prove possession of their private key when they enroll and report. Must be `optional` or `required`.",
  ),
  sessionMaxMinutes: wireSettings.session_max_minutes.describe(
    "The maximum duration of a session, in minutes. `0` means no limit.",
  ),
  sessionIdleMinutes: wireSettings.session_idle_minutes.describe(
    "The number of minutes without input or output after which a session ends. `0` means no limit.",
  ),
  sessionRecordMode: wireSettings.session_record_mode.describe(
    "The sessions to record. Must be `all` (all shells and commands), `default` (all shells and commands except file transfers) or `terminals` (terminals only).",
  ),
  sessionRecordMegabytes: wireSettings.session_record_megabytes.describe(
    "The maximum size of the recording of a session, in MiB. `0` means the limit of the server.",
  ),
  sessionRecordFailure: wireSettings.session_record_failure.describe(
    "The behavior when a session cannot be recorded for a long time, for example during an outage of the server's database. Must be `continue` (the session continues, and its record gets a gap) or `end` (the session ends).",
  ),
  sshForwarding: z
    .array(forwardingRule)
    .max(namespaces.FORWARDING_RULES_MAX)
    .superRefine(namespaces.checkForwarding)
    .optional()
    .describe(
      "The rules for SSH port forwarding through devices. Each rule allows the logins that match `login` to connect to the targets that match `target`. Defaults to an empty list, which disables forwarding.",
    ),
  sshAccessMode: z
    .enum(["legacy", "identity"])
    .optional()
    .describe(
      "Whether public keys and firewall rules authorize logins (`legacy`), or access policies (`identity`). Omit the setting to keep the current mode. Requires ShellHub 0.27 or later. A namespace that was created in identity mode cannot change to `legacy`.",
    ),
});

type Settings = z.output<typeof settings>;
type FullSettings = { [K in keyof Omit<Settings, "sshAccessMode">]-?: NonNullable<Settings[K]> };
/** The settings of a namespace: all settings that have a default, and the mode if a program declares it. */
type StoredSettings = FullSettings & Pick<Settings, "sshAccessMode">;

const DEFAULT_SETTINGS: FullSettings = {
  sessionRecord: true,
  connectionAnnouncement: "",
  deviceProof: "optional",
  sessionMaxMinutes: 0,
  sessionIdleMinutes: 0,
  sessionRecordMode: "default",
  sessionRecordMegabytes: 0,
  sessionRecordFailure: "continue",
  sshForwarding: [],
};
const SETTING_NAMES = Object.keys(DEFAULT_SETTINGS) as (keyof FullSettings)[];

/**
 * Returns true for settings that servers of version 0.19 do not have. Services omit such a setting from responses while
 * its value is the default.
 */
const isNew = (name: keyof FullSettings) => name !== "sessionRecord" && name !== "connectionAnnouncement";

/**
 * Returns the declared settings, with defaults for omitted settings. The mode has no default. The forwarding rules are
 * sorted and have no duplicates.
 */
function settingsOf(given: Settings = {}): StoredSettings {
  const all = Object.fromEntries(
    SETTING_NAMES.map((name) => [name, given[name] ?? DEFAULT_SETTINGS[name]]),
  ) as FullSettings;
  const rules = new Map(all.sshForwarding.map((rule) => [JSON.stringify([rule.login, rule.target]), rule]));
  const sshForwarding = [...rules].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, rule]) => rule);
  const { sshAccessMode } = given;
  return { ...all, sshForwarding, ...(sshAccessMode && { sshAccessMode }) };
}

/**
 * Returns the settings in the state that can be compared with the declared settings. Omits the mode if the program does
 * not declare a mode.
 */
const comparable = (state: Settings | undefined, declared: Settings | undefined): StoredSettings =>
  settingsOf(declared?.sshAccessMode === undefined ? { ...state, sshAccessMode: undefined } : state);

/** The effect of a changed setting. `opens`: the change gives access. `weakens`: the change weakens a protection. */
type SettingEffect = "opens" | "weakens" | undefined;

/** Returns the effect of a changed limit. The value 0 stands for "no limit". */
const weakensLimit = (before: number, after: number): SettingEffect =>
  (after || Number.POSITIVE_INFINITY) > (before || Number.POSITIVE_INFINITY) ? "weakens" : undefined;

const RECORD_MODES: readonly FullSettings["sessionRecordMode"][] = ["terminals", "default", "all"];

const weakensIf = (isWeaker: boolean): SettingEffect => (isWeaker ? "weakens" : undefined);

/** The functions that determine the effect of a changed setting, by the name of the setting. */
const EFFECTS: {
  readonly [K in keyof FullSettings]: (before: FullSettings[K], after: FullSettings[K]) => SettingEffect;
} = {
  sessionRecord: (before, after) => weakensIf(before && !after),
  connectionAnnouncement: () => undefined,
  deviceProof: (before, after) => weakensIf(before === "required" && after === "optional"),
  sessionMaxMinutes: weakensLimit,
  sessionIdleMinutes: weakensLimit,
  sessionRecordMode: (before, after) => weakensIf(RECORD_MODES.indexOf(after) < RECORD_MODES.indexOf(before)),
  // A smaller limit weakens the protection, because less of a session is recorded. The value 0 stands for the server's
  // own limit, which is the largest.
  sessionRecordMegabytes: (before, after) => weakensLimit(after, before),
  sessionRecordFailure: (before, after) => weakensIf(before === "end" && after === "continue"),
  sshForwarding: (before, after) =>
    after.every((rule) => before.some((other) => isDeepStrictEqual(other, rule))) ? undefined : "opens",
};

/** The settings of a namespace. A setting that the program omits has its default value. */
export type NamespaceSettings = StoredSettings;

/** A changed setting of a namespace. */
export interface SettingChange {
  /** The name of the setting in programs. */
  readonly setting: string;
  readonly from: unknown;
  readonly to: unknown;
  /**
   * The effect of the change. `opens`: the change gives access, for example through a new forwarding rule. `weakens`:
   * the change weakens a protection, such as the recording of sessions. Omitted for all other changes.
   */
  readonly effect?: "opens" | "weakens";
}

/**
 * Returns the settings of a namespace after a plan, and the names of hidden settings. A hidden setting is declared with
 * a value that is secret, or unknown before the apply. Its value in the result is the live value.
 * @param declared the settings that the plan declares
 * @param isHidden returns true for a value that is secret, or unknown before the apply
 */
export function plannedSettings(
  live: NamespaceSettings,
  declared: unknown,
  isHidden: (value: unknown) => boolean,
): { readonly settings: NamespaceSettings; readonly hidden: readonly string[] } {
  if (typeof declared === "string" && isHidden(declared)) return { settings: live, hidden: ["settings"] };
  const given = Object.entries((declared ?? {}) as Readonly<Record<string, unknown>>);
  const hidden = given.filter(([, value]) => isHidden(value)).map(([name]) => name);
  const known: Settings = Object.fromEntries(given.filter(([name]) => !hidden.includes(name)));
  const kept = Object.entries(live).filter(([name]) => hidden.includes(name));
  const { sshAccessMode = live.sshAccessMode } = known;
  return {
    settings: settingsOf({ ...known, ...Object.fromEntries(kept), ...(sshAccessMode && { sshAccessMode }) }),
    // The announcement is only a text and protects nothing, so `hidden` never contains it.
    hidden: hidden.filter((name) => name !== "connectionAnnouncement"),
  };
}

/**
 * Returns the settings of a new namespace that differ from their defaults. Each difference is a change from the
 * default.
 * @param declared the declared settings
 * @param isHidden returns true for a value that is secret, or unknown before the apply
 */
export const newSettings = (declared: unknown, isHidden: (value: unknown) => boolean): SettingChange[] => {
  const { settings, hidden } = plannedSettings(DEFAULT_SETTINGS, declared, isHidden);
  const unknown = hidden.map((setting) => ({ setting, from: null, to: "(secret or unknown)" }));
  return [...settingChanges(DEFAULT_SETTINGS, settings), ...unknown];
};

/** Returns the changed settings, each with the effect of its change. */
export function settingChanges(before: NamespaceSettings, after: NamespaceSettings): SettingChange[] {
  const changeOf = <K extends keyof FullSettings>(setting: K): SettingChange[] => {
    const [from, to] = [before[setting], after[setting]];
    if (isDeepStrictEqual(from, to)) return [];
    const effect = EFFECTS[setting](from as FullSettings[K], to as FullSettings[K]);
    return [{ setting, from, to, ...(effect && { effect }) }];
  };
  const [from, to] = [before.sshAccessMode, after.sshAccessMode];
  // A change to the mode has no `effect`, because reports show its effect as gained and lost logins.
  const mode = from === to ? [] : [{ setting: "sshAccessMode", from: from ?? null, to: to ?? null }];
  return [...SETTING_NAMES.flatMap(changeOf), ...mode];
}

export const definition = defineResource({
  name: "Namespace",
  description:
    "A namespace: a tenant of the service that contains members, public keys, firewall rules, API keys and devices. The user who creates the namespace owns it.",
  id: new IdForm("Namespace", {
    tenant: EXAMPLE_TENANT,
  }),
  idNote: "an import also accepts the name",
  object: { kind: "namespace", id: (id) => id },
  inputs: {
    name: required(namespaces.namespaceName, {
      description:
        "The name of the namespace. Must be unique on the service and a valid host name label. Stored in lowercase.",
      canonical: (name) => name.toLowerCase(),
      notDecisive: "the name is only displayed",
    }),
    settings: optional(settings, {
      description: "The settings of the namespace.",
      notDecisive: "a plan reports each unknown setting separately",
      default: DEFAULT_SETTINGS,
      canonical: settingsOf,
      sameAs: (state, declared) => sameSettings(state.settings as Settings | undefined, declared),
    }),
    forceDestroy: optional(z.boolean(), {
      description: "Whether to delete the namespace even if it has devices.",
      notDecisive: "a later deletion uses the value in the state",
      default: false,
      isLocal: true,
    }),
  },
  outputs: {
    tenant: output(tenantId, { description: "The ID of the namespace.", isId: true }),
    owner: output(userId, { description: "The ID of the user who owns the namespace." }),
    createdAt: output(dateTime, { description: "The time when the namespace was created." }),
    maxDevices: output(z.int(), {
      description: "The maximum number of accepted devices. `-1` means no limit.",
    }),
    deviceCount: output(z.int(), {
      description:
        "The number of accepted devices. The state stores this value at creation; a refresh updates it only if an input has also changed.",
      volatile: true,
    }),
  },

  needs(inputs, state) {
    const { settings = {} } = inputs;
    // With `adopt`, a run adopts the namespace and does not need to create one.
    const { adopt } = inputs as { readonly adopt?: Adopt };
    const before = settingsOf(state?.settings);
    const changed = SETTING_NAMES.filter(
      (name) => isNew(name) && !isDeepStrictEqual(settingsOf(settings)[name], before[name]),
    );
    const mode = settings.sshAccessMode;
    const field = ["settings", "sshAccessMode"];
    return [
      ...(state || adopt ? [] : [{ capability: "several namespaces" } as const]),
      ...changed.map((name) => ({ capability: "session settings", field: ["settings", name] }) as const),
      ...(mode === undefined ? [] : [{ capability: "access modes", field } as const]),
      ...(mode === "legacy" ? [{ capability: "legacy mode", field } as const] : []),
    ];
  },

  identity: {
    fields: ["name"],
    ofInputs: ({ name }) => [{ key: `namespace ${name}`, property: "name" }],
  },

  async find({ client }, inputs) {
    const found = await byName(client, inputs.name);
    return found && { id: found.tenantId, state: toState(found, inputs), live: liveFacts(found) };
  },

  async create(connection, inputs, { idempotencyKey }) {
    const body = { name: inputs.name };
    // The default namespace must be determined before the new namespace is created, because the default could otherwise
    // be the new namespace.
    await connection.home().catch(() => undefined);
    const created = await connection.client.createNamespace({ body }, { idempotencyKey });
    connection.namespaces.put(created);
    const state = toState(created, inputs);
    if (sameSettings(state.settings, inputs.settings)) return { id: created.tenantId, state };
    try {
      const { client } = await connection.tenant(created.tenantId);
      return { id: created.tenantId, state: await change(client, created.tenantId, inputs, state) };
    } catch (error) {
      throw new UnfinishedError(created.tenantId, state, error);
    }
  },

  async list({ namespaces }, tenant) {
    const found = await namespaces.find(tenant);
    return found ? [listed(tenant, found.name, toState(found), { declaredBy: found.declaredBy })] : [];
  },

  async read({ client, namespaces }, id, state) {
    // An imported `id` may be the name of the namespace.
    const isId = tenantId.safeParse(id).success;
    const found = isId ? await namespaces.find(id) : await byName(client, id.toLowerCase());
    return found && { id: found.tenantId, state: toState(found, state), live: liveFacts(found) };
  },

  async update(connection, id, state, inputs) {
    const nothingSent = state.name === inputs.name && sameSettings(state.settings, inputs.settings);
    if (nothingSent) return { ...state, forceDestroy: inputs.forceDestroy ?? false };
    const { client } = await connection.tenant(id);
    return change(client, id, inputs, state);
  },

  async delete(connection, id, state) {
    const { client } = await connection.tenant(id);
    if (!state.forceDestroy) await refuseWithDevices(connection, id);
    await connection.namespaces.remove(id, client, (witnessed) =>
      witnessed.deleteNamespace({ params: { tenant: id } }),
    );
  },
});

async function byName(client: Client, name: string): Promise<Wire | undefined> {
  const query = { filter: where("name").eq(name), perPage: 100 };
  for await (const found of client.iterate("getNamespaces", { query })) if (found.name === name) return found;
  return undefined;
}

const sameSettings = (state: Settings | undefined, declared: Settings | undefined) =>
  isDeepStrictEqual(comparable(state, declared), settingsOf(declared));

/** The inputs of a namespace. */
interface Declared {
  readonly name: string;
  readonly settings?: Settings;
  readonly forceDestroy?: boolean;
}

/** The state of a namespace. */
type NamespaceState = Omit<ReturnType<typeof toState>, "settings"> & { settings: Settings };

/**
 * Updates the namespace. Sends the request for the mode last, so that the mode changes only if all other changes
 * succeeded.
 * @throws ResourceError if the namespace cannot change to the declared mode; thrown before the first write
 */
async function change(
  client: Client,
  tenant: string,
  inputs: Declared,
  before: Readonly<NamespaceState>,
): Promise<NamespaceState> {
  const mode = inputs.settings?.sshAccessMode;
  const isSwitch =
    mode !== undefined && mode !== before.settings.sshAccessMode && (await needsSwitch(client, tenant, mode));
  const others = { ...inputs.settings, sshAccessMode: undefined };
  const isSame = before.name === inputs.name && sameSettings(before.settings, others);
  const after = isSame
    ? { ...before, settings: settingsOf({ ...before.settings, sshAccessMode: mode }) }
    : await edit(client, tenant, inputs, before.settings);
  const state = { ...after, forceDestroy: inputs.forceDestroy ?? false };
  if (!isSwitch) return state;
  await client.request(setSshAccessMode, { params: { tenant }, body: { ssh_access_mode: mode } });
  return { ...state, settings: { ...state.settings, sshAccessMode: mode } };
}

/**
 * Returns true if the current mode of the namespace differs from `mode`. A request for the current mode must not be
 * sent: if the namespace has no access policy, the request would create one.
 * @throws ResourceError if the namespace cannot change to the mode
 */
async function needsSwitch(client: Client, tenant: string, mode: SshAccessMode): Promise<boolean> {
  const live = await client.getNamespace({ params: { tenant } });
  if (mode === "identity" || isLegacyModeAllowed(live)) return sshAccessModeOf(live) !== mode;
  throw new ResourceError("Namespace", {
    code: "unsupported_change",
    field: ["settings", "sshAccessMode"],
    detail: said`cannot change to legacy: the namespace was created in identity mode`,
    remedy: said`use the mode identity, and declare access policies`,
  });
}

/**
 * Updates the name and the settings. Servers of version 0.19 do not have some of the settings. Sends such a setting
 * only if its value differs from the default or from `before`.
 * @param before the settings that were read last
 * @throws ResourceError if the service ignored a setting; the error contains the name of the setting
 */
async function edit(
  client: Client,
  tenant: string,
  inputs: Declared,
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
  const after = toState(await client.editNamespace({ params: { tenant }, body }), inputs);
  const missed = SETTING_NAMES.filter((name) => isNew(name) && differs(name, after.settings));
  const ignored = missed.find((name) => sent.includes(name));
  if (ignored !== undefined) {
    throw new ResourceError("Namespace", {
      code: "unsupported_change",
      field: ["settings", ignored],
      detail: said`The service does not support this setting and ignored it`,
      remedy: said`remove the setting, or upgrade the service`,
    });
  }
  // A setting that was not sent may have changed out of band since `before` was read. The repeated call sends this
  // setting.
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
      detail: said`Cannot delete the namespace: it has ${total} devices`,
      remedy: said`remove the devices, or set ${force} and apply that change first`,
    });
  }
}

/**
 * Converts a namespace to a state.
 * @param known the inputs, or the previous state. If they contain settings without a mode, the result has no mode
 *   either, because a program that omits the mode accepts every mode
 */
function toState(wire: Wire, known: Partial<Declared> = {}) {
  // A newer server may have additional modes, which no program can declare.
  const sshAccessMode = sshAccessModeOf(wire) as Settings["sshAccessMode"];
  return {
    name: wire.name,
    settings: comparable({ ...wire.settings, sshAccessMode }, known.settings ?? { sshAccessMode }),
    forceDestroy: known.forceDestroy ?? false,
    tenant: wire.tenantId,
    owner: wire.owner,
    createdAt: wire.createdAt,
    maxDevices: wire.maxDevices,
    deviceCount: acceptedDevicesOf(wire) ?? 0,
  };
}
