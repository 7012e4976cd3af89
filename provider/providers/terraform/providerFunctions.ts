import { parseSshPublicKey } from "@gatehouse-access/sdk/contract";
import { cidr, hostname, login } from "../../helpers/patterns.ts";
import { decoded, encoded, type WireValue } from "./wireValues.ts";

/** A function that configurations call, as in `provider::gatehouse::login("root")`. It asks no service. */
export interface ProviderFunction {
  readonly name: string;
  readonly summary: string;
  readonly description: string;
  readonly parameter: { readonly name: string; readonly description: string };
  /** True where it takes one text or more. */
  readonly variadic: boolean;
  /** @throws Error saying what is allowed */
  call(...args: readonly string[]): string;
}

export const providerFunctions: readonly ProviderFunction[] = [
  {
    name: "key_fingerprint",
    summary: "The MD5 fingerprint of an SSH public key",
    description:
      "The fingerprint by which the service knows a key, 16 hex pairs: that of one OpenSSH public key line. Its comment is not part of the key.",
    parameter: { name: "data", description: "The key: one OpenSSH public key line." },
    variadic: false,
    call: (data) => parseSshPublicKey(data ?? "").fingerprint,
  },
  {
    name: "login",
    summary: "A pattern that admits exactly these login names",
    description:
      '`login("root", "ana")` is `^(ana|root)$`. Patterns of the service are not anchored: `root` alone admits `notroot` too.',
    parameter: { name: "names", description: "A login name." },
    variadic: true,
    call: login,
  },
  {
    name: "hostname",
    summary: "A pattern that matches exactly these device names",
    description: "Device names are in lower case, so the pattern is too.",
    parameter: { name: "names", description: "The name of a device." },
    variadic: true,
    call: hostname,
  },
  {
    name: "cidr",
    summary: "A pattern that matches exactly the addresses of these ranges, IPv4 or IPv6",
    description: "For `source_ip`. The ranges are in CIDR notation; an address alone is a range of one.",
    parameter: { name: "ranges", description: "A range such as `10.0.0.0/8`, or an address." },
    variadic: true,
    call: cidr,
  },
];

const STRING = Buffer.from(JSON.stringify("string"));

function functionSchema({ summary, description, parameter, variadic }: ProviderFunction): object {
  const given = { ...parameter, type: STRING };
  return {
    ...{ summary, description, return: { type: STRING } },
    ...(variadic ? { variadicParameter: given } : { parameters: [given] }),
  };
}

/** The functions in the protocol, by name. */
export const functionSchemas = (): object =>
  Object.fromEntries(providerFunctions.map((called) => [called.name, functionSchema(called)]));

/** Answers a call of a function. */
export function callFunction({
  name,
  arguments: given = [],
}: {
  readonly name: string;
  readonly arguments?: readonly WireValue[];
}): object {
  const called = providerFunctions.find((one) => one.name === name);
  if (!called) return { error: { text: `${name}: is no function of this provider` } };
  try {
    return { result: encoded(called.call(...given.map((value) => String(decoded(value))))) };
  } catch (error) {
    return { error: { text: error instanceof Error ? error.message : String(error) } };
  }
}
