import { parseSshPublicKey } from "@gatehouse-access/sdk/contract";
import { type DenyingPart, type KeyLapse, loginDecision, matchesWhole } from "@gatehouse-access/sdk/policy";
import type { Decision } from "../../DecisionTurns.ts";
import type { Device, Namespace } from "../../db/generated/sqlite/client.ts";
import { inTransaction, type Transaction } from "../../db/sql/transaction.ts";
import { BusyError } from "../../errors.ts";
import { findAddressed, withNamespace } from "../../features/devices/lookup.ts";
import { activeRules } from "../../features/firewall/evaluate.ts";
import { forwardingOf } from "../../features/namespaces/objects.ts";
import { credentialOf, findOwnedKey, type OwnedKey } from "../../features/publicKeys/publicKeys.ts";
import { tagNames } from "../../features/tags/tagList.ts";
import type { Services } from "../../services.ts";
import type {
  Admission,
  DeviceName,
  LoginQuestion,
  RecordFailure,
  RecordingMode,
  RefusedLogin,
} from "../protocol.ts";
import { fingerprintOf } from "../ssh/signature.ts";

/**
 * Allows or denies a login, according to the namespace's keys (rules section 13) and firewall rules (section 14). Reads
 * the keys and rules in one transaction, so that a change applies to the next login. Denies the login if too many
 * decisions of the namespace are waiting.
 */
export async function admit(services: Services, question: LoginQuestion): Promise<Admission> {
  const { key, firewall } = question;
  const policy = await inTransaction(services, async (tx) => {
    const device = await findDevice(tx, question.device);
    if (device === null) return null;
    const usesRules = firewall && services.settings.edition !== "community";
    return {
      device,
      stored: key && (await storedKey(tx, device.tenantId, key)),
      rules: usesRules ? await activeRules(tx, device.tenantId) : [],
    };
  });
  if (policy === null) return NO_DEVICE;
  try {
    return await services.decisions.run(policy.device.tenantId, admissionBy(services, policy, question));
  } catch (error) {
    if (error instanceof BusyError) return { refused: "busy", reason: error.message };
    throw error;
  }
}

/** Allows or denies a login, according to the policy of its namespace. */
function* admissionBy(
  services: Services,
  policy: Policy & { readonly device: AddressedDevice },
  question: LoginQuestion,
): Decision<Admission> {
  const { device } = policy;
  const at = services.accessTime();
  const refusal = yield* refusalOf(services, policy, question, at);
  if (refusal !== undefined) return refusal;
  const { connectionAnnouncement, sessionRecord, sessionRecordMode, ...namespace } = device.namespace;
  const announcement = connectionAnnouncement.trimEnd().replaceAll(/\r?\n/g, "\r\n");
  return {
    device: {
      uid: device.uid,
      tenantId: device.tenantId,
      announcement: announcement && `${announcement}\r\n`,
      recording:
        sessionRecord && services.settings.edition !== "community"
          ? (sessionRecordMode as RecordingMode)
          : "none",
      recordFailure: namespace.sessionRecordFailure as RecordFailure,
      forwarding: yield* forwardingFor(services, device.namespace, question.login),
      idleMinutes: namespace.sessionIdleMinutes,
      ends: {
        access: keyEnd(policy.stored, at),
        rule: nextRuleEnd(policy.rules, at),
        maxMinutes: namespace.sessionMaxMinutes,
      },
    },
  };
}

/**
 * Returns the patterns of the targets (`host:port`) to which a login may forward connections. Returns undefined if the
 * operator has disabled forwarding.
 */
function* forwardingFor(
  { settings, patterns }: Services,
  namespace: Pick<Namespace, "sshForwarding" | "tenantId">,
  login: string,
): Decision<string[] | undefined> {
  if (settings.sshForwarding === "off") return undefined;
  if (settings.sshForwarding === "on") return [".*"];
  const source = patterns.of(namespace.tenantId);
  const targets: string[] = [];
  for (const rule of forwardingOf(namespace)) {
    if (matchesWhole(rule.login, login, source)) targets.push(rule.target);
    yield;
  }
  return targets;
}

/** The refusal of a login to a device that is not accepted. */
export const NO_DEVICE: RefusedLogin = {
  refused: "device",
  reason: "the device does not exist or is not accepted",
};

/** A device with the settings of its namespace. */
type AddressedDevice = NonNullable<Awaited<ReturnType<typeof findDevice>>>;

/** The data that determines whether a login is allowed, read in one transaction. */
interface Policy {
  readonly device: Pick<Device, "name" | "tenantId"> & { readonly tags: Parameters<typeof tagNames>[0] };
  /** The namespace's key that has the fingerprint of the login's key. Null if the namespace has no such key. */
  readonly stored: OwnedKey | null | undefined;
  /** The active rules of the namespace, highest precedence first. */
  readonly rules: Awaited<ReturnType<typeof activeRules>>;
}

/** Returns the reason why the policy refuses a login. Returns undefined if the policy allows the login. */
export function* refusalOf(
  { patterns }: Pick<Services, "patterns">,
  { device, stored, rules }: Policy,
  { login, address, key }: Pick<LoginQuestion, "login" | "address" | "key">,
  at: Date,
): Decision<RefusedLogin | undefined> {
  // The fingerprint is an MD5 digest, so two keys may have the same fingerprint.
  const found = stored && key && keyOfStored(stored.data).equals(key) ? stored : null;
  const attempt = {
    deviceName: device.name,
    deviceTags: tagNames(device.tags),
    login,
    sourceIp: address,
    at,
  };
  const { deniedBy, rule } = yield* loginDecision(
    key === undefined ? "password" : credentialOf(found),
    rules,
    attempt,
    patterns.of(device.tenantId),
  );
  return deniedBy && refusalBy(deniedBy, found?.name, rule?.id);
}

const LAPSES: Readonly<Record<KeyLapse, string>> = {
  type: "has a type that the service refuses",
  expired: "has expired",
  owner: "belongs to a user who is not a member",
};

function refusalBy(part: DenyingPart, key: string | undefined, rule: number | undefined): RefusedLogin {
  switch (part) {
    case "key":
      return { refused: part, reason: "the namespace has no such key" };
    case "login":
    case "device":
      return { refused: "filter", reason: `the key ${key} does not match this login name or this device` };
    case "rule":
      return { refused: "firewall", reason: `denied by firewall rule ${rule}` };
    default:
      return { refused: part, reason: `the key ${key} ${LAPSES[part]}` };
  }
}

/**
 * Returns the first expiry time of a rule after the given time, in milliseconds since 1970. Returns Infinity if no rule
 * expires after that time.
 */
export const nextRuleEnd = (rules: Policy["rules"], at: Date): number =>
  nextEnd(
    rules.map(({ expiresAt }) => expiresAt),
    at,
  );

/** Returns the next expiry time of a key or of its owner's membership, see {@link nextEnd}. */
export const keyEnd = (key: OwnedKey | null | undefined, at: Date): number =>
  nextEnd([key?.expiresAt, key?.owner?.accessExpiresAt], at);

/**
 * Returns the earliest expiry time after the given time, in milliseconds since 1970. Returns Infinity if there is no
 * such expiry time.
 */
export function nextEnd(ends: readonly (Date | string | null | undefined)[], at: Date): number {
  const times = ends.map((end) => (end ? new Date(end).getTime() : Infinity));
  return times.reduce((next, time) => (time > at.getTime() && time < next ? time : next), Infinity);
}

/**
 * Returns the namespace's key that has the same fingerprint as the given key. Returns null if the namespace has no such
 * key.
 */
export const storedKey = (tx: Transaction, tenantId: string, key: Buffer): Promise<OwnedKey | null> =>
  findOwnedKey(tx, { tenantId, fingerprint: fingerprintOf(key) });

/** Converts a stored key to SSH's wire format. */
export function keyOfStored(stored: string): Buffer {
  const { blob } = parseSshPublicKey(Buffer.from(stored, "base64").toString());
  return Buffer.from(blob, "base64");
}

function findDevice(tx: Transaction, name: DeviceName) {
  if (!("uid" in name)) return findAddressed(tx, name);
  return tx.device.findUnique({ where: { uid: name.uid, status: "accepted" }, include: withNamespace });
}
