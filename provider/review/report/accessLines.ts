import { type Access, type AccessChange, accessChanges } from "@gatehouse-access/sdk/policy";
import { byText } from "../words/order.ts";

/** Access that several keys gain or lose alike: one sentence of the review. */
export interface AccessLine {
  readonly change: AccessChange["change"];
  readonly keys: readonly { readonly fingerprint: string; readonly name: string }[];
  readonly logins: readonly string[];
  /** True when the login names are all of the domain. */
  readonly anyLogin: boolean;
  readonly addresses: readonly string[];
  /** True when the addresses are all of the domain. */
  readonly anyAddress: boolean;
  /** Uids. */
  readonly devices: readonly string[];
}

/**
 * What a change means, in as few sentences as say it: logins and keys that gain or lose the same are named together.
 * Losses come first, since they lock out, then what concerns most devices.
 * @param before and `after` must have the same domain and list of uids
 */
export function accessLines(before: Access, after: Access): AccessLine[] {
  const byLogin = new Map<string, AccessChange & { logins: string[] }>();
  for (const change of accessChanges(before, after)) {
    const id = JSON.stringify([change.change, change.key.fingerprint, change.addresses, change.devices]);
    const same = byLogin.get(id);
    if (same) same.logins.push(change.login);
    else byLogin.set(id, { ...change, logins: [change.login] });
  }
  const lines = new Map<string, AccessLine & { keys: AccessLine["keys"][number][] }>();
  for (const { change, key, logins, addresses, devices } of byLogin.values()) {
    const id = JSON.stringify([change, logins, addresses, devices]);
    const known = lines.get(id);
    const { fingerprint, name } = key;
    if (known) known.keys.push({ fingerprint, name });
    else {
      const anyAddress = addresses.length === after.domain.addresses.length;
      const anyLogin = logins.length === after.domain.logins.length;
      const keys = [{ fingerprint, name }];
      lines.set(id, { change, keys, logins, anyLogin, addresses, anyAddress, devices });
    }
  }
  return [...lines.values()].sort(
    (left, right) =>
      Number(left.change === "gained") - Number(right.change === "gained") ||
      right.devices.length - left.devices.length ||
      byText(left.keys[0]?.name ?? "", right.keys[0]?.name ?? ""),
  );
}
