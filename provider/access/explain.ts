import {
  type AccessDevice,
  type AccessKey,
  ANY_ADDRESS,
  type ConsideredRule,
  DEFAULT_LOGIN,
  type Explanation,
  explain,
  keyAdmits,
} from "@gatehouse-access/sdk/policy";
import { counted, keyText, listText } from "../words/phrases.ts";
import { printable } from "../words/printable.ts";
import { AccessInquiryError } from "./inquiry.ts";
import type { AccessView } from "./view.ts";

/** What a rule has to do with one login. */
export interface ExplainedRule extends ConsideredRule {
  /** True where one aspect alone keeps it from matching, and it would decide if it matched. */
  readonly nearly: boolean;
}

/** Why one login is allowed, or is not. */
export interface AccessExplanation extends Omit<Explanation, "key" | "considered"> {
  readonly key: AccessKey;
  readonly login: string;
  readonly address: string;
  /** What the inquiry left open, so that it was assumed. */
  readonly assumed: readonly ("login" | "address")[];
  /** Whether the key's pattern is found in the login name. */
  readonly keyAdmitsLogin: boolean;
  /** Whether the key's filter is for the device. */
  readonly keyAdmitsDevice: boolean;
  /** All rules of the namespace, strongest first. */
  readonly considered: readonly ExplainedRule[];
}

/**
 * Explains why the login that is asked about is allowed, or is not.
 * @throws AccessInquiryError where more or less than one key and one device are asked about
 */
export function accessExplanation({ estate, inquiry, devices, keys }: AccessView): AccessExplanation {
  const key = only("key", keys, keyText);
  const device = only("device", devices, ({ name }: AccessDevice) => name);
  const [login = DEFAULT_LOGIN] = inquiry.logins;
  const [address = ANY_ADDRESS] = inquiry.addresses;
  const question = { fingerprint: key.fingerprint, login, address, uid: device.uid };
  const explanation = explain(estate.policy, question);
  return {
    ...explanation,
    key,
    login,
    address,
    assumed: [
      ...(inquiry.logins.length === 0 ? (["login"] as const) : []),
      ...(inquiry.addresses.length === 0 ? (["address"] as const) : []),
    ],
    keyAdmitsLogin: keyAdmits({ ...key, filter: {} }, device, login),
    keyAdmitsDevice: keyAdmits({ ...key, username: "" }, device, login),
    considered: withNearly(explanation.considered),
  };
}

/** A rule that is weaker than the one that decides would not decide, even if it matched. */
function withNearly(considered: readonly ConsideredRule[]): ExplainedRule[] {
  const decisive = considered.findIndex(({ role }) => role === "decides");
  return considered.map((rule, place) => ({
    ...rule,
    nearly: rule.misses.length === 1 && (decisive < 0 || place < decisive),
  }));
}

function only<T>(flag: string, items: readonly T[], textOf: (item: T) => string): T {
  const [item] = items;
  if (item !== undefined && items.length === 1) return item;
  const several = items.length === 0 ? "" : `: ${printable(listText(items.map(textOf)))}`;
  throw new AccessInquiryError(
    flag,
    `--explain is about exactly one, and this means ${counted(items.length, flag)}${several}`,
  );
}
