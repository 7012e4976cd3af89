import { isIP } from "node:net";
import { readAddress } from "../policyTests/address.ts";
import { AccessQueryError } from "./AccessQueryError.ts";

/** What is asked about access; what is left out is asked for all there are. */
export interface AccessFlags {
  /** Names, uids or tags of devices, see `selectDevices`. */
  readonly device?: readonly string[];
  /** Fingerprints or names of keys, see `selectKeys`. */
  readonly key?: readonly string[];
  /** Login names. */
  readonly login?: readonly string[];
  /** IP addresses of clients. */
  readonly from?: readonly string[];
  /** Whether one decision is to be explained. */
  readonly explain?: boolean;
}

/** The forms of an answer: a table, or for other programs. */
export type AccessFormat = "text" | "json" | "csv";

/** A question whose parts were checked, as far as they can be without the namespace. */
export interface AccessQuery {
  readonly devices: readonly string[];
  readonly keys: readonly string[];
  readonly logins: readonly string[];
  /** In the form in which the service sees them. */
  readonly addresses: readonly string[];
  readonly explain: boolean;
  readonly format: AccessFormat;
}

/**
 * Checks what is asked.
 * @throws AccessQueryError naming the flag, and what is allowed
 */
export function accessQuery(flags: AccessFlags, format: AccessFormat): AccessQuery {
  const { device = [], key = [], login = [], from = [], explain = false } = flags;
  for (const [flag, texts] of Object.entries({ device, key, login })) {
    if (texts.includes("")) throw new AccessQueryError(`--${flag}: must not be empty`);
  }
  if (explain && format === "csv") throw new AccessQueryError("--explain: not with --csv; with --json it is");
  if (explain && login.length > 1) throw new AccessQueryError("--explain: takes one --login at most");
  if (explain && from.length > 1) throw new AccessQueryError("--explain: takes one --from at most");
  const addresses = [...new Set(from.map(normalAddress))];
  return { devices: device, keys: key, logins: [...new Set(login)], addresses, explain, format };
}

/** IPv4, also where it is mapped into IPv6, in dotted decimals, and IPv6 shortened: what patterns are tried on. */
function normalAddress(text: string): string {
  // Node's own check comes first: the library also takes `127.1` and `0x7f000001`.
  if (isIP(text) === 0 || text.includes("%")) {
    throw new AccessQueryError(`--from: must be an IPv4 or IPv6 address, as 198.51.100.7, not ${text}`);
  }
  return readAddress(text).toString();
}
