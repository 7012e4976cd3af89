import {
  AuthenticationError,
  apiKeyCredential,
  type ClientOptions,
  ConfigurationError,
  createClient,
  credentialsFromEnvironment,
} from "@gatehouse-access/sdk";
import { tenantId } from "@gatehouse-access/sdk/contract";
import { Connection } from "../resources/connection.ts";

/** The keys of the stack's configuration, each with the environment variable that it stands for. */
const CONFIGURATION = {
  "gatehouse:url": "GATEHOUSE_URL",
  "gatehouse:caFile": "GATEHOUSE_CA_FILE",
  "gatehouse:tenant": "GATEHOUSE_TENANT",
  "gatehouse:apiKey": "GATEHOUSE_API_KEY",
  "gatehouse:token": "GATEHOUSE_TOKEN",
  "gatehouse:username": "GATEHOUSE_USERNAME",
  "gatehouse:password": "GATEHOUSE_PASSWORD",
  "gatehouse:totpSecret": "GATEHOUSE_TOTP_SECRET",
} as const;

/** The variables of credentials. */
const CREDENTIALS: readonly string[] = [
  "GATEHOUSE_API_KEY",
  "GATEHOUSE_TOKEN",
  "GATEHOUSE_USERNAME",
  "GATEHOUSE_PASSWORD",
  "GATEHOUSE_TOTP_SECRET",
];

const USER_AGENT = "gatehouse-provider";

/** A stack's configuration, by `namespace:key`; undefined for a key that is not set. */
export type Lookup = (key: string) => string | undefined;

/**
 * Makes a connection; the caller closes its client.
 * @param lookup the stack's configuration
 * @param env the environment, whose variables win over the configuration; by default that of this process
 * @throws ConfigurationError naming the variable that is missing or wrong, with what is allowed
 */
export function newConnection(lookup: Lookup, env: NodeJS.ProcessEnv = process.env): Connection {
  const { url, ca, credential } = credentialsFromEnvironment(settings(lookup, env));
  if (!url) {
    throw new ConfigurationError(
      "GATEHOUSE_URL: set it to the address of the service, for example https://access.example.org",
    );
  }
  if (!credential) {
    throw new ConfigurationError(
      "credential: set GATEHOUSE_USERNAME and GATEHOUSE_PASSWORD, or GATEHOUSE_TOKEN, or GATEHOUSE_API_KEY (each also as …_FILE)",
    );
  }
  const service = { url, ...(ca !== undefined && { ca }), userAgent: USER_AGENT };
  return new Connection(createClient({ ...service, credential }), {
    defaultTenant: defaultTenant(lookup, env),
    opens: (secret) => opens(service, secret),
  });
}

/** True when the service takes this secret as an API key. */
export async function opens(service: ClientOptions, secret: string): Promise<boolean> {
  const client = createClient({ ...service, credential: apiKeyCredential(secret) });
  try {
    await client.getTags();
    return true;
  } catch (error) {
    if (error instanceof AuthenticationError) return false;
    throw error;
  } finally {
    await client.close();
  }
}

/**
 * The namespace of resources that name none, where a setting says which.
 * @throws ConfigurationError when GATEHOUSE_TENANT is no id of a namespace
 */
export function defaultTenant(lookup: Lookup, env: NodeJS.ProcessEnv = process.env): string | undefined {
  const { GATEHOUSE_TENANT, GATEHOUSE_TENANT_FILE } = settings(lookup, env);
  const { tenant } = credentialsFromEnvironment({ GATEHOUSE_TENANT, GATEHOUSE_TENANT_FILE });
  const result = tenantId.optional().safeParse(tenant);
  if (!result.success)
    throw new ConfigurationError("GATEHOUSE_TENANT: must be a lower-case uuid, the id of a namespace");
  return result.data;
}

/**
 * The settings as environment variables: those of the environment, and of the stack's configuration what the
 * environment leaves open. A credential in the environment replaces the configured one as a whole, so that the two
 * never mix.
 */
export function settings(lookup: Lookup, env: NodeJS.ProcessEnv): Record<string, string> {
  const given = Object.entries(env).filter(
    (entry): entry is [string, string] => entry[0].startsWith("GATEHOUSE_") && Boolean(entry[1]),
  );
  const isGiven = (name: string) =>
    given.some(([variable]) => variable === name || variable === `${name}_FILE`);
  const credentialGiven = CREDENTIALS.some(isGiven);
  const configured = Object.entries(CONFIGURATION)
    .filter(([, name]) => !isGiven(name) && !(credentialGiven && CREDENTIALS.includes(name)))
    .map(([key, name]) => [name, lookup(key)] as const)
    .filter((entry): entry is [never, string] => Boolean(entry[1]));
  return Object.fromEntries([...configured, ...given]);
}
