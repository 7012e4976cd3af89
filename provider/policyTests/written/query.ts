import type { AccessDevice, AccessKey, AccessRule } from "@gatehouse-access/sdk/policy";

/** One login that is allowed. */
export interface Decision {
  readonly key: AccessKey;
  readonly login: string;
  /** The client's address. */
  readonly address: string;
  readonly device: AccessDevice;
  /** The rule that allows it; null where none matches. */
  readonly rule: AccessRule | null;
}

/** Which devices; each field that is given must fit. */
export interface DeviceQuery {
  /** Name; `*` stands for any text, `?` for one character. */
  readonly name?: string;
  readonly tag?: string;
  readonly uid?: string;
}

/** Which logins an assertion is about; each field that is given must fit, and `{}` is about all of them. */
export interface AccessQuery {
  /** A public key's name, where `*` stands for any text and `?` for one character, or its fingerprint. */
  readonly key?: string;
  /** Login name; `*` stands for any text, `?` for one character. */
  readonly login?: string;
  readonly device?: DeviceQuery;
  /** Client addresses: one, or a network like `10.0.0.0/8`, or several of them. */
  readonly from?: string | readonly string[];
  /** A condition of your own, asked of logins that are allowed and fit otherwise. */
  readonly where?: (decision: Decision) => boolean;
}
