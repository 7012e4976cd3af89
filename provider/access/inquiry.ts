import { isIP } from "node:net";
import { GatehouseError } from "@gatehouse-access/sdk";
import { readAddress } from "./network.ts";

/** The flags of `gatehouse access`. What is left out is asked for all there are. */
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

/** The form of an answer: a table for people, or data for other programs. */
export type AccessFormat = "text" | "json" | "csv";

/** What is asked about access, checked as far as it can be without the namespace. */
export interface AccessInquiry {
  readonly devices: readonly string[];
  readonly keys: readonly string[];
  readonly logins: readonly string[];
  /** In the form in which the service sees them. */
  readonly addresses: readonly string[];
  readonly explain: boolean;
  readonly format: AccessFormat;
}

/** What is asked about access makes no sense, or names something that is not there. */
export class AccessInquiryError extends GatehouseError {
  override readonly name = "AccessInquiryError";
  /** The flag of the command without its dashes. */
  readonly flag: string;

  constructor(flag: string, detail: string, remedy?: string) {
    super({ code: "access_inquiry", field: [`--${flag}`], detail, remedy });
    this.flag = flag;
  }
}

/**
 * Checks what is asked.
 * @throws AccessInquiryError naming the flag, and what is allowed
 */
export function accessInquiry(flags: AccessFlags, format: AccessFormat): AccessInquiry {
  const { device = [], key = [], login = [], from = [], explain = false } = flags;
  for (const [flag, texts] of Object.entries({ device, key, login })) {
    if (texts.includes("")) throw new AccessInquiryError(flag, "must not be empty");
  }
  if (explain && format === "csv")
    throw new AccessInquiryError("explain", "not with --csv", "with --json it is");
  if (explain && login.length > 1) throw new AccessInquiryError("explain", "takes one --login at most");
  if (explain && from.length > 1) throw new AccessInquiryError("explain", "takes one --from at most");
  const addresses = [...new Set(from.map(normalAddress))];
  return { devices: device, keys: key, logins: [...new Set(login)], addresses, explain, format };
}

/** Patterns are tried on this form: IPv4 in dotted decimals, also where it is mapped into IPv6, and IPv6 shortened. */
function normalAddress(text: string): string {
  // Node's own check comes first: the library also takes `127.1` and `0x7f000001`.
  if (isIP(text) === 0 || text.includes("%")) {
    throw new AccessInquiryError("from", `must be an IPv4 or IPv6 address, as 198.51.100.7, not ${text}`);
  }
  return readAddress(text).toString();
}
