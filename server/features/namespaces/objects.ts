import { isDeepStrictEqual } from "node:util";
import { namespaces } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import type { Declared, ManagedObject } from "../../changes/managedObject.ts";
import type { Member, Namespace } from "../../db/generated/sqlite/client.ts";
import { findRow, updateRow } from "../../db/sql/rows.ts";
import type { ShownRow } from "../../db/sql/sql.ts";
import { changesFrom, presenter } from "../fields.ts";

const { member, namespace } = namespaces;

type Settings = z.output<typeof namespace>["settings"];

/** Returns the forwarding rules of a namespace. */
export const forwardingOf = (
  row: Pick<Namespace, "sshForwarding">,
): NonNullable<Settings["ssh_forwarding"]> => JSON.parse(row.sshForwarding);

/** The default values of the settings that do not exist on servers of version 0.19. */
const DEFAULTS: Readonly<Record<string, unknown>> = {
  device_proof: "optional",
  session_max_minutes: 0,
  session_idle_minutes: 0,
  session_record_mode: "default",
  session_record_megabytes: 0,
  session_record_failure: "continue",
  ssh_forwarding: [],
} satisfies Partial<Settings>;

const { settings } = namespace.shape;

/** Converts all settings of a namespace, including settings with their default values. */
export const presentSettings = presenter<Namespace, typeof settings>(settings, {});

/**
 * Returns the settings of a namespace in wire format. A setting that does not exist on servers of version 0.19 is
 * omitted if it has its default value. Therefore, a namespace with default settings has the same wire format and
 * revision as in version 0.19.
 */
export function wireSettings(row: ShownRow<Namespace>): Settings {
  const all = Object.entries(presentSettings(row));
  return Object.fromEntries(
    all.filter(([name, value]) => !isDeepStrictEqual(value, DEFAULTS[name])),
  ) as Settings;
}

const requested = namespaces.editNamespace.body.shape.settings.unwrap();

/** Returns the columns for the settings in a request. */
export const settingsChanges = changesFrom<Namespace, typeof requested>(requested, {});

/** Returns the declared fields of a namespace. They do not include the members, which are separate objects. */
export const declaredNamespace = (row: ShownRow<Namespace>): Declared => ({
  name: row.name,
  settings: wireSettings(row),
});

const declared = member.pick({ role: true, access_expires_at: true });

/** Returns the declared fields of a membership. */
export const declaredMember = presenter<Member, typeof declared>(declared, {});

export const namespaceObject: ManagedObject<Namespace> = {
  missing: "no such namespace",
  id: (_, { tenantId, result }) => String(result?.tenant_id ?? tenantId),
  find: (tx, _, tenantId) => findRow(tx, "Namespace", { tenantId }),
  declared: declaredNamespace,
  declare: (tx, _, tenantId, declaredBy) => updateRow(tx, "Namespace", { tenantId }, { declaredBy }),
};

export const memberObject: ManagedObject<Member> = {
  missing: "no such member",
  async id(tx, { params, body, caller }) {
    if (params.uid) return params.uid;
    if (typeof body.email !== "string") return caller.kind === "user" ? caller.userId : "";
    return (await findRow(tx, "User", { email: body.email.toLowerCase() }))?.id ?? "";
  },
  find: (tx, tenantId, userId) => findRow(tx, "Member", { tenantId, userId }),
  declared: declaredMember,
  declare: (tx, tenantId, userId, declaredBy) =>
    updateRow(tx, "Member", { tenantId, userId }, { declaredBy }),
};
