import { camelKey } from "@gatehouse-access/sdk";
import { parseSshPublicKey } from "@gatehouse-access/sdk/contract";
import { cidr, hostname, login } from "../../helpers/patterns.ts";
import { githubActions, gitlabCi, kubernetes, type WorkloadTokens } from "../../helpers/workloads.ts";
import { terraformName } from "../../terraform/types.ts";
import { decoded, encoded, type WireValue } from "./wireValues.ts";

/**
 * A provider function, which configurations call as in `provider::gatehouse::login("root")`. The function sends no
 * request.
 */
interface ProviderFunction {
  readonly name: string;
  readonly summary: string;
  readonly description: string;
  /** The parameter. The default type is `string`. */
  readonly parameter: { readonly name: string; readonly description: string; readonly type?: ValueType };
  /** True if the function accepts one or more values, false if it accepts exactly one value. */
  readonly variadic: boolean;
  /**
   * The type of the result.
   * @default "string"
   */
  readonly result?: ValueType;
  /**
   * Returns the result of the function.
   * @throws Error if an argument is invalid; the message contains the allowed values
   */
  call(...args: readonly unknown[]): unknown;
}

/** The type of a parameter or a result: its name in the documentation, and its form in the protocol. */
interface ValueType {
  readonly text: string;
  readonly wire: unknown;
}

const STRING: ValueType = { text: "string", wire: "string" };

/** Wraps a function whose arguments are strings. */
const ofTexts =
  (called: (...texts: readonly string[]) => string) =>
  (...args: readonly unknown[]) =>
    called(...args.map(String));

/**
 * Wraps a helper for trusted workloads. The property names in the argument and in the result become Terraform's names.
 */
const ofWorkloads = (
  helper: (values: never) => WorkloadTokens,
  described: Pick<ProviderFunction, "name" | "summary" | "description" | "parameter">,
): ProviderFunction => ({
  ...described,
  parameter: { ...described.parameter, type: { text: "map of string", wire: ["map", "string"] } },
  variadic: false,
  result: {
    text: "object with issuer, claims and single_use",
    wire: ["object", { issuer: "string", claims: ["map", "string"], single_use: "bool" }],
  },
  call(given) {
    const values = Object.entries(given ?? {})
      .filter(([, value]) => value !== null)
      // A map of strings cannot contain booleans, so the strings `true` and `false` become booleans. No helper accepts
      // one of these strings for any other argument.
      .map(([name, value]) => [camelKey(name), ["true", "false"].includes(value) ? value === "true" : value]);
    try {
      const { issuer, claims, singleUse } = helper(Object.fromEntries(values) as never);
      return { issuer, claims, single_use: singleUse };
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      throw new TypeError(error.message.replaceAll(/[a-z]+[A-Z]\w*/g, terraformName), { cause: error });
    }
  },
});

export const providerFunctions: readonly ProviderFunction[] = [
  {
    name: "key_fingerprint",
    summary: "The MD5 fingerprint of an SSH public key",
    description:
      "Returns the fingerprint that identifies a public key on the service, as 16 hexadecimal pairs separated by colons. The comment of the key is ignored.",
    parameter: { name: "data", description: "The public key, as one line in OpenSSH format." },
    variadic: false,
    call: ofTexts((data = "") => parseSshPublicKey(data).fingerprint),
  },
  {
    name: "login",
    summary: "A pattern that matches exactly the given login names",
    description:
      'Returns an anchored RE2 pattern: `login("root", "ana")` is `^(ana|root)$`. Patterns of the service are not anchored, so `root` alone also matches `notroot`.',
    parameter: { name: "names", description: "A login name." },
    variadic: true,
    call: ofTexts(login),
  },
  {
    name: "hostname",
    summary: "A pattern that matches exactly the given device names",
    description:
      "Returns an anchored RE2 pattern. The pattern is in lowercase because device names are in lowercase.",
    parameter: { name: "names", description: "The name of a device." },
    variadic: true,
    call: ofTexts(hostname),
  },
  {
    name: "cidr",
    summary: "A pattern that matches exactly the addresses in the given IPv4 or IPv6 ranges",
    description:
      "Returns an anchored RE2 pattern for `source_ip`. The ranges must be in CIDR notation. A single address is also valid.",
    parameter: { name: "ranges", description: "A range such as `10.0.0.0/8`, or a single address." },
    variadic: true,
    call: ofTexts(cidr),
  },
  ofWorkloads(githubActions, {
    name: "github_actions",
    summary: "The issuer and the claims of jobs of GitHub Actions",
    description:
      "Returns values for a `gatehouse_trusted_workload`. Set `ref` or `environment` for a role above observer.",
    parameter: {
      name: "jobs",
      description:
        "The attribute `repository`, as `owner/name`, and optionally `ref`, `environment`, `workflow` and `repository_owner_id`.",
    },
  }),
  ofWorkloads(gitlabCi, {
    name: "gitlab_ci",
    summary: "The issuer and the claims of jobs of GitLab CI",
    description:
      "Returns values for a `gatehouse_trusted_workload`. Set `ref`, `ref_protected` or `environment` for a role above observer.",
    parameter: {
      name: "jobs",
      description:
        "The attribute `project`, as `group/project`, and optionally `ref`, `ref_protected`, `environment` and `issuer`.",
    },
  }),
  ofWorkloads(kubernetes, {
    name: "kubernetes",
    summary: "The issuer and the claims of a Kubernetes service account",
    description: "Returns values for a `gatehouse_trusted_workload` with projected tokens.",
    parameter: {
      name: "account",
      description: "The attributes `issuer`, `namespace` and `service_account`.",
    },
  }),
];

const onWire = ({ wire }: ValueType) => Buffer.from(JSON.stringify(wire));

function functionSchema({
  summary,
  description,
  parameter,
  variadic,
  result = STRING,
}: ProviderFunction): object {
  const given = { ...parameter, type: onWire(parameter.type ?? STRING) };
  return {
    summary,
    description,
    return: { type: onWire(result) },
    ...(variadic ? { variadicParameter: given } : { parameters: [given] }),
  };
}

/** Returns the schemas of the functions in the form of the protocol, by name. */
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
    return { result: encoded(called.call(...given.map(decoded))) };
  } catch (error) {
    return { error: { text: error instanceof Error ? error.message : String(error) } };
  }
}
