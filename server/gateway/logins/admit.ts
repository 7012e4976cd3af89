import { hash } from "node:crypto";
import { parseSshPublicKey } from "@gatehouse-access/sdk/contract";
import { keyAdmits } from "@gatehouse-access/sdk/policy";
import type { Device, Namespace } from "../../db/generated/sqlite/client.ts";
import { inTransaction, type Transaction } from "../../db/transaction.ts";
import { findAddressed, withNamespace } from "../../features/devices/lookup.ts";
import { presentFilter } from "../../features/filters/filter.ts";
import { activeRules, decideLogin } from "../../features/firewall/evaluate.ts";
import { publicKeyRows } from "../../features/publicKeys/publicKey.ts";
import { tagNames } from "../../features/tags/tagList.ts";
import type { Services } from "../../services.ts";
import type { DeviceName, SshAddress } from "./sshAddress.ts";

/** The device of a login, with its namespace. */
export type AdmittedDevice = Device & { readonly namespace: Namespace };

/** Why a login is refused: for the operator's log and metrics, never for the stranger. */
export type Refusal =
  | "address"
  | "device"
  | "key"
  | "filter"
  | "firewall"
  | "password"
  | "signature"
  | "unreachable";

/** What the policy says to a login. */
export type Admission =
  | { readonly device: AdmittedDevice }
  | { readonly refused: Refusal; readonly reason: string };

/** The questions that a login may ask of the policy, in the order in which a client asks them. */
export interface LoginQuestion extends SshAddress {
  /** The client's address, normalised. */
  readonly address: string;
  /** The public key that the client holds, as SSH has it; undefined: it has sent a password. */
  readonly key: Buffer | undefined;
  /** Whether firewall rules decide too: not yet while the client only asks whether a key would do. */
  readonly firewall: boolean;
}

/**
 * Decides about a login by the namespace's keys (rules section 13) and firewall rules (section 14), all read at one
 * moment: a change is felt by the next login.
 */
export async function admit(services: Services, question: LoginQuestion): Promise<Admission> {
  const { login, address, key, firewall } = question;
  const found = await inTransaction(services, async (tx) => {
    const device = await findDevice(tx, question.device);
    if (device === null) return null;
    const asksRules = firewall && services.settings.edition !== "community";
    return {
      device,
      stored: key && (await publicKeyRows.find(tx, ownerOf(device, key))),
      rules: asksRules ? await activeRules(tx, device.tenantId) : [],
    };
  });
  if (found === null) return { refused: "device", reason: "no such device, or it is not accepted" };
  const { device, stored, rules } = found;
  const tags = tagNames(device.tags);
  if (key !== undefined) {
    // The fingerprint is an MD5 digest: two keys may have the same one.
    if (!stored || !keyOfStored(stored.data).equals(key)) {
      return { refused: "key", reason: "the namespace has no such key" };
    }
    const rule = { username: stored.username, filter: presentFilter(stored) };
    if (!keyAdmits(rule, { name: device.name, tags }, login)) {
      return {
        refused: "filter",
        reason: `the key ${stored.name} is not for this login name or this device`,
      };
    }
  }
  const { allowed, rule } = await decideLogin(rules, {
    deviceName: device.name,
    deviceTags: tags,
    login,
    sourceIp: address,
  });
  if (!allowed) return { refused: "firewall", reason: `denied by firewall rule ${rule?.id}` };
  return { device };
}

const ownerOf = ({ tenantId }: Device, key: Buffer) => ({ tenantId, fingerprint: fingerprintOf(key) });

/** The fingerprint of a key as SSH has it (models section 0). */
export function fingerprintOf(key: Buffer): string {
  return hash("md5", key).match(/../g)?.join(":") ?? "";
}

/** The key of a stored one, as SSH has it. */
export function keyOfStored(stored: string): Buffer {
  const { blob } = parseSshPublicKey(Buffer.from(stored, "base64").toString());
  return Buffer.from(blob, "base64");
}

function findDevice(tx: Transaction, name: DeviceName) {
  if (!("uid" in name)) return findAddressed(tx, name);
  return tx.device.findUnique({ where: { uid: name.uid, status: "accepted" }, include: withNamespace });
}
