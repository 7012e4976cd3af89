import { type AccessKey, type AccessRule, type Grant, grantsOf } from "@gatehouse-access/sdk/policy";
import type { AccessView } from "./view.ts";

/** What one rule allows one key: each login name, from each address, on each device. */
export interface AccessRow {
  readonly key: AccessKey;
  readonly logins: readonly string[];
  readonly addresses: readonly string[];
  /** Null where no rule matches, which allows. */
  readonly rule: AccessRule | null;
  /** Uids, in the order of the devices' names. */
  readonly devices: readonly string[];
}

/** Everything that is allowed. It goes key by key, so that no more than the rows of one key are in memory at once. */
export function* accessRows({ access, keys }: AccessView): Generator<AccessRow> {
  for (const key of keys) {
    const rows: (Grant & { readonly logins: string[] })[] = [];
    for (const grant of grantsOf(access, [key])) {
      const same = rows.find((row) => isAlike(row, grant));
      if (same) same.logins.push(grant.login);
      else rows.push({ ...grant, logins: [grant.login] });
    }
    for (const { logins, addresses, rule, devices } of rows) yield { key, logins, addresses, rule, devices };
  }
}

const isAlike = (left: Grant, right: Grant): boolean =>
  left.rule === right.rule && isSame(left.addresses, right.addresses) && isSame(left.devices, right.devices);

const isSame = (left: readonly string[], right: readonly string[]): boolean =>
  left.length === right.length && left.every((text, index) => text === right[index]);
