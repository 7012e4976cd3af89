import { parseSshPublicKey } from "@gatehouse-access/sdk/contract";
import { cidr, hostname, login } from "../../helpers/patterns.ts";
import { decoded, encoded, type WireValue } from "./wireValues.ts";

/** A function for configurations, as in `provider::gatehouse::login("root")`. The function sends no request. */
export interface ProviderFunction {
  readonly name: string;
  readonly summary: string;
  readonly description: string;
  readonly parameter: { readonly name: string; readonly description: string };
  /** True if the function accepts one or more strings. False if it accepts exactly one string. */
  readonly variadic: boolean;
  /**
   * Returns the result of the function.
   * @throws Error with the allowed values
   */
  call(...args: readonly string[]): string;
}

export const providerFunctions: readonly ProviderFunction[] = [
  {
    name: "key_fingerprint",
    summary: "The MD5 fingerprint of an SSH public key",
    description:
      "Returns the fingerprint that identifies a public key on the service, as 16 hexadecimal pairs separated by colons. The comment of the key is ignored.",
    parameter: { name: "data", description: "The public key, as one line in OpenSSH format." },
    variadic: false,
    call: (data) => parseSshPublicKey(data ?? "").fingerprint,
  },
  {
    name: "login",
    summary: "A pattern that matches exactly the given login names",
    description:
      'Returns an anchored RE2 pattern: `login("root", "ana")` is `^(ana|root)$`. Patterns of the service are not anchored, so `root` alone also matches `notroot`.',
    parameter: { name: "names", description: "A login name." },
    variadic: true,
    call: login,
  },
  {
    name: "hostname",
    summary: "A pattern that matches exactly the given device names",
    description:
      "Returns an anchored RE2 pattern. The pattern is in lowercase because device names are in lowercase.",
    parameter: { name: "names", description: "The name of a device." },
    variadic: true,
    call: hostname,
  },
  {
    name: "cidr",
    summary: "A pattern that matches exactly the addresses in the given IPv4 or IPv6 ranges",
    description:
      "Returns an anchored RE2 pattern for `source_ip`. The ranges must be in CIDR notation. A single address is also valid.",
    parameter: { name: "ranges", description: "A range such as `10.0.0.0/8`, or a single address." },
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

/** Returns the function schemas of the protocol, by name. */
export const functionSchemas = (): object =>
  Object.fromEntries(providerFunctions.map((called) => [called.name, functionSchema(called)]));

/** Handles a function call. */
export function callFunction({
  name,
  arguments: given = [],
}: {
  readonly name: string;
  readonly arguments?: readonly WireValue[];
}): object {
  const called = providerFunctions.find((candidate) => candidate.name === name);
  if (!called) return { error: { text: `${name} is not a function of this provider` } };
  try {
    return { result: encoded(called.call(...given.map((value) => String(decoded(value))))) };
  } catch (error) {
    return { error: { text: error instanceof Error ? error.message : String(error) } };
  }
}
