import {
  AuthenticationError,
  apiKeyCredential,
  type ClientOptions,
  ConfigurationError,
  createClient,
  credentialsFromEnvironment,
  GITHUB_OIDC_VARIABLES,
  PROXY_VARIABLES,
  type RetryPolicy,
  type RetryWait,
  TransportError,
  type TransportFailure,
} from "@gatehouse-access/sdk";
import { tenantId } from "@gatehouse-access/sdk/contract";
import { Connection, type FrontEnd } from "./connection.ts";

/** A setting of the provider. */
export interface Setting {
  /** The environment variable for the setting. `<variable>_FILE` contains the path of a file with the value. */
  readonly variable: string;
  readonly description: string;
  /** True for a part of a credential. The parts of different credentials are never combined. */
  readonly credential?: boolean;
  /** True for a secret. A secret is encrypted in configurations and states, and is never printed. */
  readonly secret?: boolean;
  /** True for a setting with the values `true` and `false`. The setting has no `_FILE` variable. */
  readonly isSwitch?: boolean;
  /** True for a setting that has no `_FILE` variable. */
  readonly isPlain?: boolean;
}

/**
 * The settings of the provider. In a stack, each setting is `gatehouse:<name>`. In a provider instance, each setting is
 * an argument.
 */
export const SETTINGS = {
  url: {
    variable: "GATEHOUSE_URL",
    description: "The URL of the service, for example `https://access.example.org`.",
  },
  caFile: {
    variable: "GATEHOUSE_CA_FILE",
    description:
      "The path of a PEM file with CA certificates to trust, in addition to the authorities that Node.js trusts.",
  },
  tenant: {
    variable: "GATEHOUSE_TENANT",
    description:
      "The ID of the namespace for resources that do not set `tenant`. Defaults to the only namespace of the credential.",
  },
  retryTimeout: {
    variable: "GATEHOUSE_RETRY_TIMEOUT",
    description:
      "The number of seconds for which a request is retried while the service is unreachable or rate-limits the request. Set to `0` to disable retries. Defaults to `60`, or `10` before the first contact.",
  },
  oidc: {
    variable: "GATEHOUSE_OIDC",
    description:
      "The source of tokens of a workload: `github`, `gitlab` or `file`. The namespace in `tenant` must trust the workload.",
    credential: true,
  },
  oidcAudience: {
    variable: "GATEHOUSE_OIDC_AUDIENCE",
    description:
      "With `github`: the audience of the tokens. Defaults to `url`, without a trailing slash. For other sources, the source sets the audience.",
    credential: true,
  },
  oidcToken: {
    variable: "GATEHOUSE_OIDC_TOKEN",
    description: "With `gitlab`: the token of the job.",
    credential: true,
    secret: true,
  },
  oidcTokenFile: {
    variable: "GATEHOUSE_OIDC_TOKEN_FILE",
    description:
      "With `file`: the path of a file with a token, such as a projected token of Kubernetes. The file is read again for each exchange.",
    credential: true,
  },
  apiKey: {
    variable: "GATEHOUSE_API_KEY",
    description: "An API key. It belongs to one namespace and lacks the permissions that require a user.",
    credential: true,
    secret: true,
  },
  token: {
    variable: "GATEHOUSE_TOKEN",
    description: "The token of a user.",
    credential: true,
    secret: true,
  },
  username: {
    variable: "GATEHOUSE_USERNAME",
    description: "The username or e-mail address of a user. Requires `password`.",
    credential: true,
  },
  password: {
    variable: "GATEHOUSE_PASSWORD",
    description: "The password of the user.",
    credential: true,
    secret: true,
  },
  totpSecret: {
    variable: "GATEHOUSE_TOTP_SECRET",
    description: "The base32 TOTP secret of the user, if the user has two-factor authentication.",
    credential: true,
    secret: true,
  },
  requireEnforcedExpiry: {
    variable: "GATEHOUSE_REQUIRE_ENFORCED_EXPIRY",
    description:
      "Set to `true` to reject `expiresAt` and `owner` in previews if the server does not enforce them. By default, a notice reports such a server.",
    isSwitch: true,
  },
  deleteClaimed: {
    variable: "GATEHOUSE_DELETE_CLAIMED",
    description:
      "Set to `true` to delete objects that another stack has declared last. By default, a deletion leaves such an object on the service.",
    isSwitch: true,
  },
} satisfies Readonly<Record<string, Setting>>;

/** A setting that exists only for Terraform, because Pulumi programs already have a project name. */
export const PROJECT_SETTING: Setting = {
  variable: "GATEHOUSE_PROJECT",
  description:
    "The name of the project that declares the objects, together with the workspace. Set it in each root module, so that two folders with equal names are two projects. Defaults to the base name of the root module's folder.",
  isPlain: true,
};

/** A setting that exists only for Terraform, because previews of Pulumi do not need the service. */
export const SKIP_PREFLIGHT_SETTING: Setting = {
  variable: "GATEHOUSE_SKIP_PREFLIGHT",
  description:
    "Set to `true` to plan without the service. By default, the provider connects with its address and credential before each plan and apply, and fails if it cannot. Set it if the same apply creates the service.",
  isPlain: true,
};

/** Returns the description of a setting, with its environment variables. */
export function settingText({ description, variable, isSwitch, isPlain }: Setting): string {
  const inFile =
    isSwitch || isPlain || variable.endsWith("_FILE")
      ? ""
      : `, or \`${variable}_FILE\` for a file with the value`;
  return `${description} Can also be set with the environment variable \`${variable}\`${inFile}.`;
}

const all = Object.entries(SETTINGS) as readonly (readonly [string, Setting])[];

const ofCredentials = all.filter(([, { credential }]) => credential);

export const CREDENTIALS: readonly string[] = ofCredentials.map(([, { variable }]) => variable);

export const CREDENTIAL_SETTINGS: readonly string[] = ofCredentials.map(([name]) => name);

/**
 * The values that turn a switch off. Any other value turns it on, so that a misspelled value does not disable a
 * protection.
 */
const OFF: readonly string[] = ["", "0", "false"];

const USER_AGENT = "gatehouse-provider";

/**
 * Returns the value of a key in a stack's configuration. The key has the form `namespace:key`. Returns undefined if the
 * key is not set.
 */
export type Lookup = (key: string) => string | undefined;

/**
 * The callbacks and limits for retry delays. A client waits before it sends a request to an unavailable service again.
 */
export interface Waiting {
  /** Called with a line of text when a wait is long, and then every few seconds until the wait ends. */
  readonly tell: (line: string) => void;
  /** A signal that ends all waits. The waiting requests then fail immediately. */
  readonly stop?: AbortSignal | undefined;
  /** Limits for retries. They override GATEHOUSE_RETRY_TIMEOUT. */
  readonly retry?: Partial<RetryPolicy>;
}

/** The remedies for missing settings, by front end. */
const REMEDIES: Readonly<Record<FrontEnd, { readonly url: string; readonly credential: string }>> = {
  pulumi: {
    url: "set it to the address of the service, for example https://access.example.org",
    credential:
      "set GATEHOUSE_OIDC (in a pipeline), or GATEHOUSE_USERNAME and GATEHOUSE_PASSWORD, or GATEHOUSE_TOKEN, or GATEHOUSE_API_KEY (each also as …_FILE)",
  },
  terraform: {
    url: "set it or the provider's argument url to the address of the service, for example https://access.example.org",
    credential:
      "set GATEHOUSE_OIDC (in a pipeline), or GATEHOUSE_USERNAME and GATEHOUSE_PASSWORD, or GATEHOUSE_TOKEN, or GATEHOUSE_API_KEY (each also as …_FILE), or the provider's arguments oidc, username and password, token, or api_key",
  },
};

/**
 * Returns the name of a setting in a stack's configuration, such as `gatehouse:url` for the variable `GATEHOUSE_URL`.
 */
function configuredName(variable: string): string {
  const name = settingOf(variable);
  return name === undefined ? variable : `gatehouse:${name}`;
}

/**
 * Returns the name of the setting that an environment variable sets. Returns undefined for a `_FILE` form, and for any
 * other variable.
 */
export const settingOf = (variable: string): string | undefined =>
  all.find(([, setting]) => setting.variable === variable)?.[0];

/**
 * Calls `work`, which reads settings from environment variables. If `work` throws an error about a variable whose
 * setting comes from a different source, replaces the variable in the error with the name from `nameOf`.
 * @throws ConfigurationError if `work` throws it
 */
export function withNames<T>(nameOf: (variable: string) => string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    const [variable] = error instanceof ConfigurationError ? (error.field ?? []) : [];
    const name = typeof variable === "string" ? nameOf(variable) : variable;
    if (!(error instanceof ConfigurationError) || name === undefined || name === variable) throw error;
    const { detail, value, remedy } = error;
    throw new ConfigurationError(detail, { field: [name], value, remedy, cause: error });
  }
}

/**
 * Creates a connection. The caller closes its client.
 * @param lookup the stack's configuration
 * @param env the environment. Its variables take precedence over the configuration.
 * @param frontEnd the front end. Errors contain the names of its settings.
 * @param names returns the name that errors use for an environment variable. By default, errors contain the variable if
 *   it is set in the environment, and otherwise the setting of the stack.
 * @throws ConfigurationError with the missing or invalid variable and its allowed values
 */
export function newConnection(
  lookup: Lookup,
  { tell, stop, retry: limits }: Waiting,
  env: NodeJS.ProcessEnv = process.env,
  frontEnd: FrontEnd = "pulumi",
  names?: (variable: string) => string,
): Connection {
  const given = settings(lookup, env);
  const nameOf = names ?? ((variable: string) => (env[variable] ? variable : configuredName(variable)));
  const { url, ca, credential, retry, proxyFor } = withNames(nameOf, () => credentialsFromEnvironment(given));
  if (!url) {
    throw new ConfigurationError("is not set", {
      field: ["GATEHOUSE_URL"],
      remedy: REMEDIES[frontEnd].url,
    });
  }
  if (!credential) {
    throw new ConfigurationError("is not set", {
      field: ["credential"],
      remedy: REMEDIES[frontEnd].credential,
    });
  }
  const service: ClientOptions = {
    url,
    ...(ca !== undefined && { ca }),
    ...(proxyFor && { proxyFor }),
    userAgent: USER_AGENT,
    retry: { ...retry, ...limits },
    onWait: waitReporter(tell),
    ...(stop && { stopWaiting: stop }),
  };
  const named = { ...credential, settings: credential.settings?.map(nameOf) ?? [] };
  return new Connection(createClient({ ...service, credential: named }), {
    frontEnd,
    defaultTenant: withNames(nameOf, () => defaultTenant(lookup, env)),
    requiresEnforcedExpiry: !OFF.includes(given[SETTINGS.requireEnforcedExpiry.variable] ?? ""),
    deletesClaimed: !OFF.includes(given[SETTINGS.deleteClaimed.variable] ?? ""),
    opens: (secret) => opens(service, secret),
  });
}

/**
 * Durations in milliseconds. A retry delay of at least `LONG` is reported immediately. `BETWEEN` is the minimum
 * interval between two reported lines.
 */
const [LONG, BETWEEN] = [1_000, 5_000];

const REASONS: Readonly<Partial<Record<TransportFailure, string>>> = {
  unreachable: "no connection",
  interrupted: "connection lost",
  timeout: "no answer",
};

/**
 * Returns a callback that reports waits. Concurrent requests wait at the same time, so one line reports all of their
 * waits.
 */
function waitReporter(tell: (line: string) => void): (wait: RetryWait) => void {
  let next = 0;
  return ({ error, ms, left }) => {
    const isShort = error.attempts < 3 && ms < LONG;
    if (isShort || Date.now() < next) return;
    next = Date.now() + BETWEEN;
    const reason = error instanceof TransportError ? REASONS[error.reason] : error.status;
    tell(`Waiting for the service (${reason}), ${Math.ceil(left / 1000)} s left`);
  };
}

/** Returns true if the service accepts this secret as an API key. */
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
 * Returns the id of the default namespace. Returns undefined if no setting defines it.
 * @throws ConfigurationError if GATEHOUSE_TENANT is not the id of a namespace
 */
export function defaultTenant(lookup: Lookup, env: NodeJS.ProcessEnv = process.env): string | undefined {
  const { GATEHOUSE_TENANT, GATEHOUSE_TENANT_FILE } = settings(lookup, env);
  const { tenant } = credentialsFromEnvironment({ GATEHOUSE_TENANT, GATEHOUSE_TENANT_FILE });
  const result = tenantId.optional().safeParse(tenant);
  if (!result.success) {
    // The error contains the value only if it can be a name. Any other value may be a secret that was set by mistake.
    const isName = /^[a-z\d-]{1,63}$/i.test(tenant ?? "");
    throw new ConfigurationError(
      `must be the id of a namespace, a lower-case uuid${isName ? `, not ${JSON.stringify(tenant)}` : ""}`,
      {
        field: ["GATEHOUSE_TENANT"],
        remedy: "run gatehouse namespace list, which prints the names and ids of your namespaces",
      },
    );
  }
  return result.data;
}

/**
 * Returns the settings as environment variables. Variables of the environment take precedence over the stack's
 * configuration. A credential in the environment replaces the configured credential completely, so that the two
 * credentials are never combined.
 */
export function settings(lookup: Lookup, env: NodeJS.ProcessEnv): Record<string, string> {
  const isRead = (name: string) =>
    name.startsWith("GATEHOUSE_") || [...GITHUB_OIDC_VARIABLES, ...PROXY_VARIABLES].includes(name);
  const given = Object.entries(env).filter(
    (entry): entry is [string, string] => isRead(entry[0]) && Boolean(entry[1]),
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
