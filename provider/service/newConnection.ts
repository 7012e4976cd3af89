import {
  AuthenticationError,
  apiKeyCredential,
  type ClientOptions,
  ConfigurationError,
  createClient,
  credentialsFromEnvironment,
  type RetryWait,
  TransportError,
  type TransportFailure,
} from "@gatehouse-access/sdk";
import { tenantId } from "@gatehouse-access/sdk/contract";
import { Connection } from "./connection.ts";

/** A setting of the provider. */
export interface Setting {
  /** The environment variable of the same meaning; `<variable>_FILE` names a file with the value. */
  readonly variable: string;
  readonly description: string;
  /** True for a part of a credential: the parts of two never mix. */
  readonly credential?: boolean;
  /** True for what is encrypted in configurations and states, and never shown. */
  readonly secret?: boolean;
}

/** The settings of the provider: as `gatehouse:<name>` those of a stack, as arguments those of a provider instance. */
export const SETTINGS = {
  url: {
    variable: "GATEHOUSE_URL",
    description: "Address of the service, for example https://access.example.org.",
  },
  caFile: {
    variable: "GATEHOUSE_CA_FILE",
    description:
      "File with certificates (PEM) of authorities that are trusted beside those that Node.js trusts.",
  },
  tenant: {
    variable: "GATEHOUSE_TENANT",
    description: "Id of the namespace of resources that name none. Left out: the only one of the credential.",
  },
  retryTimeout: {
    variable: "GATEHOUSE_RETRY_TIMEOUT",
    description:
      "Seconds for which a request is repeated while the service cannot be reached or asks to wait. Default: 60, and 10 before the first contact. 0: a request is never repeated.",
  },
  apiKey: {
    variable: "GATEHOUSE_API_KEY",
    description: "An API key: it is for one namespace, and cannot do what takes a user.",
    credential: true,
    secret: true,
  },
  token: {
    variable: "GATEHOUSE_TOKEN",
    description: "A user's token.",
    credential: true,
    secret: true,
  },
  username: {
    variable: "GATEHOUSE_USERNAME",
    description: "Name or e-mail address of a user; with password.",
    credential: true,
  },
  password: {
    variable: "GATEHOUSE_PASSWORD",
    description: "The user's password.",
    credential: true,
    secret: true,
  },
  totpSecret: {
    variable: "GATEHOUSE_TOTP_SECRET",
    description: "Base32 secret of the user's second factor, where the user has one.",
    credential: true,
    secret: true,
  },
} satisfies Readonly<Record<string, Setting>>;

/** What a setting means, and which environment variables have the same meaning. */
export function settingText({ description, variable }: Setting): string {
  const inFile = variable.endsWith("_FILE") ? "" : `, or ${variable}_FILE for a file that holds it`;
  return `${description} Environment: ${variable}${inFile}.`;
}

const all = Object.entries(SETTINGS) as readonly (readonly [string, Setting])[];

const ofCredentials = all.filter(([, { credential }]) => credential);

export const CREDENTIALS: readonly string[] = ofCredentials.map(([, { variable }]) => variable);

export const CREDENTIAL_SETTINGS: readonly string[] = ofCredentials.map(([name]) => name);

const USER_AGENT = "gatehouse-provider";

/** A stack's configuration, by `namespace:key`; undefined for a key that is not set. */
export type Lookup = (key: string) => string | undefined;

/** What happens while requests wait for the service. */
export interface Waiting {
  /** Gets a line when a wait is not short, and every few seconds while it lasts. */
  readonly tell: (line: string) => void;
  /** Aborting it ends all waits: their requests fail at once. */
  readonly stop?: AbortSignal | undefined;
}

/**
 * Makes a connection; the caller closes its client.
 * @param lookup the stack's configuration
 * @param env the environment, whose variables win over the configuration; by default that of this process
 * @throws ConfigurationError naming the variable that is missing or wrong, with what is allowed
 */
export function newConnection(
  lookup: Lookup,
  { tell, stop }: Waiting,
  env: NodeJS.ProcessEnv = process.env,
): Connection {
  const { url, ca, credential, retry } = credentialsFromEnvironment(settings(lookup, env));
  if (!url) {
    throw new ConfigurationError("is not set", {
      field: ["GATEHOUSE_URL"],
      remedy: "set it to the address of the service, for example https://access.example.org",
    });
  }
  if (!credential) {
    throw new ConfigurationError("is not set", {
      field: ["credential"],
      remedy:
        "set GATEHOUSE_USERNAME and GATEHOUSE_PASSWORD, or GATEHOUSE_TOKEN, or GATEHOUSE_API_KEY (each also as …_FILE)",
    });
  }
  const service: ClientOptions = {
    url,
    ...(ca !== undefined && { ca }),
    userAgent: USER_AGENT,
    ...(retry && { retry }),
    onWait: tellingWaits(tell),
    ...(stop && { stopWaiting: stop }),
  };
  return new Connection(createClient({ ...service, credential }), {
    defaultTenant: defaultTenant(lookup, env),
    opens: (secret) => opens(service, secret),
  });
}

/** Milliseconds of a pause that is worth a line at once, and between two lines. */
const [LONG, BETWEEN] = [1_000, 5_000];

const REASONS: Readonly<Partial<Record<TransportFailure, string>>> = {
  unreachable: "no connection",
  interrupted: "connection lost",
  timeout: "no answer",
};

/** Tells of waits. Requests that run at once wait at once, and share the lines. */
function tellingWaits(tell: (line: string) => void): (wait: RetryWait) => void {
  let next = 0;
  return ({ error, ms, left }) => {
    const isShort = error.attempts < 3 && ms < LONG;
    if (isShort || Date.now() < next) return;
    next = Date.now() + BETWEEN;
    const reason = error instanceof TransportError ? REASONS[error.reason] : error.status;
    tell(`Waiting for the service (${reason}), ${Math.ceil(left / 1000)} s left`);
  };
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
    throw new ConfigurationError("must be a lower-case uuid, the id of a namespace", {
      field: ["GATEHOUSE_TENANT"],
    });
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
  const configured = all
    .filter(([, { variable, credential }]) => !isGiven(variable) && !(credentialGiven && credential))
    .map(([name, { variable }]) => [variable, lookup(`gatehouse:${name}`)] as const)
    .filter((entry): entry is [string, string] => Boolean(entry[1]));
  return Object.fromEntries([...configured, ...given]);
}
