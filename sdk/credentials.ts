import * as OTPAuth from "otpauth";
import { contentOf, type Environment, environmentValue } from "./environment.ts";
import { ConfigurationError } from "./errors.ts";
import { parseJson } from "./json.ts";
import { PROXY_VARIABLES, type ProxyFor, proxiesFromEnvironment } from "./proxies.ts";
import type { RetryPolicy } from "./retry.ts";
import { Secret } from "./secret.ts";
import { serviceAddress } from "./serviceAddress.ts";

/** The origin of a credential, for errors. */
interface WithSettings {
  /** Names of the settings that contain the credential, such as `GATEHOUSE_API_KEY`. */
  readonly settings?: readonly string[];
}

/** An API key. It is valid for one namespace, and cannot call operations that require a user. */
export interface ApiKeyCredential extends WithSettings {
  readonly kind: "apiKey";
  readonly key: Secret;
}

/** A user's token, which expires after several days. */
export interface TokenCredential extends WithSettings {
  readonly kind: "token";
  readonly token: Secret;
}

/** A user's name and password. The client logs in when it first needs a token. */
export interface PasswordCredential extends WithSettings {
  readonly kind: "password";
  /** User name or e-mail. */
  readonly username: string;
  readonly password: Secret;
  /** TOTP secret of the user, in base32; required if the user has MFA. */
  readonly totpSecret?: Secret;
}

/**
 * The source of tokens from an OpenID Connect provider:
 * - `github`: a GitHub Actions job, which requests a new token for each exchange
 * - `token`: a fixed token, such as the token that GitLab gives to a job
 * - `file`: a file in which another program renews the token, such as a projected token of Kubernetes. The client reads
 *   the file for each exchange
 */
export type OidcSource<Text = Secret> =
  | {
      readonly kind: "github";
      /** Value of `ACTIONS_ID_TOKEN_REQUEST_URL`. */
      readonly url: string;
      /** Value of `ACTIONS_ID_TOKEN_REQUEST_TOKEN`. */
      readonly requestToken: Text;
      /** Audience of the requested tokens. @default the address of the service, without a trailing slash */
      readonly audience?: string;
    }
  | { readonly kind: "token"; readonly token: Text }
  | { readonly kind: "file"; readonly path: string };

/**
 * A workload, such as a job of a pipeline. The client exchanges a token of an OpenID Connect provider for a session of
 * a trusted workload.
 */
export interface WorkloadCredential extends WithSettings {
  readonly kind: "workload";
  /** Id of the namespace for calls that do not set a namespace. */
  readonly tenant: string;
  readonly source: OidcSource;
}

/** A credential of a caller (rules section 1). */
export type Credential = ApiKeyCredential | TokenCredential | PasswordCredential | WorkloadCredential;

/** Data about the caller of a client, for error messages. */
export interface Caller {
  /** The user name of a login; undefined for other kinds of credentials. */
  readonly username?: string;
  /** Names of the settings that contain the credential. */
  readonly settings?: readonly string[] | undefined;
}

function headerValue(text: string, what: string): Secret {
  if (!/^[\x21-\x7e]+$/.test(text)) {
    throw new ConfigurationError("is empty, or contains white space or non-ASCII characters", {
      field: [what],
      remedy: "copy the value again, without spaces and line breaks",
    });
  }
  return new Secret(text);
}

/**
 * Creates the credential of an API key.
 * @param setting the setting that contains the key, for errors
 * @throws ConfigurationError when the key cannot be sent in a header
 */
export function apiKeyCredential(key: string, setting = "apiKey"): ApiKeyCredential {
  return { kind: "apiKey", key: headerValue(key, setting) };
}

/**
 * Creates the credential of a token. The prefix `Bearer` is optional.
 * @param setting the setting that contains the token, for errors
 * @throws ConfigurationError when the token cannot be sent in a header
 */
export function tokenCredential(token: string, setting = "token"): TokenCredential {
  return { kind: "token", token: headerValue(token.replace(/^Bearer\s+/i, ""), setting) };
}

/**
 * Creates the credential of a user from a user name, a password, and the TOTP secret if the user has MFA.
 * @throws ConfigurationError when the user name or the password is empty, or the TOTP secret is not base32
 */
export function passwordCredential(input: {
  readonly username: string;
  readonly password: string;
  readonly totpSecret?: string;
}): PasswordCredential {
  if (input.username === "" || input.password === "") {
    throw new ConfigurationError("User name and password must not be empty", { field: ["credential"] });
  }
  return {
    kind: "password",
    username: input.username,
    password: new Secret(input.password),
    ...(input.totpSecret !== undefined && { totpSecret: totpSecret(input.totpSecret) }),
  };
}

/**
 * Creates the credential of a workload.
 * @param input the id of a namespace, and the source of the tokens of the OpenID Connect provider
 * @throws ConfigurationError when the namespace is empty, or a token cannot be sent in a header
 */
export function workloadCredential(input: {
  readonly tenant: string;
  readonly source: OidcSource<string>;
}): WorkloadCredential {
  const { tenant, source } = input;
  if (tenant === "") throw new ConfigurationError("must not be empty", { field: ["tenant"] });
  const kind = "workload";
  if (source.kind === "file") return { kind, tenant, source };
  if (source.kind === "token") {
    return { kind, tenant, source: { ...source, token: headerValue(source.token, "GATEHOUSE_OIDC_TOKEN") } };
  }
  const requestToken = headerValue(source.requestToken, "ACTIONS_ID_TOKEN_REQUEST_TOKEN");
  return { kind, tenant, source: { ...source, requestToken } };
}

function totpSecret(text: string, setting = "totpSecret"): Secret {
  const compact = text.replace(/[\s-]/g, "").replace(/=+$/, "").toUpperCase();
  if (!/^[A-Z2-7]+$/.test(compact) || OTPAuth.Secret.fromBase32(compact).bytes.length === 0) {
    throw new ConfigurationError("is not base32", {
      field: [setting],
      remedy:
        "set it to the secret of the authenticator app, which consists of the letters A to Z and the digits 2 to 7",
    });
  }
  return new Secret(compact);
}

/** The settings of a client from environment variables. A setting is absent if its variable is not set. */
export interface EnvironmentSettings {
  readonly url?: string;
  /** Certificates (PEM) of authorities to trust in addition to those that Node trusts. */
  readonly ca?: string;
  readonly credential?: Credential;
  /** Id of the default namespace of resources. */
  readonly tenant?: string;
  /** Limits for retries of requests. */
  readonly retry?: Pick<RetryPolicy, "budget" | "firstContact">;
  /** The HTTP proxies for requests. */
  readonly proxyFor?: ProxyFor;
}

/**
 * Reads the settings of a client from environment variables.
 * - GATEHOUSE_URL and GATEHOUSE_TENANT.
 * - GATEHOUSE_RETRY_TIMEOUT, in seconds. This time also replaces the shorter limit that applies until the client has
 *   reached the service for the first time.
 * - GATEHOUSE_CA_FILE, the path of a file.
 * - One credential: GATEHOUSE_API_KEY, GATEHOUSE_TOKEN, GATEHOUSE_USERNAME with GATEHOUSE_PASSWORD (and
 *   GATEHOUSE_TOTP_SECRET for a user with MFA), or GATEHOUSE_OIDC with GATEHOUSE_TENANT.
 * - GATEHOUSE_OIDC is `github`, `gitlab` or `file`. `github` requests tokens with the variables of a GitHub Actions
 *   job, for the audience in GATEHOUSE_OIDC_AUDIENCE. `gitlab` uses the token in GATEHOUSE_OIDC_TOKEN. `file` reads the
 *   token from the file GATEHOUSE_OIDC_TOKEN_FILE for each exchange.
 *
 * Every variable except GATEHOUSE_CA_FILE also has a `_FILE` form, which contains the path of a file with the value.
 * The settings also contain the proxies from the environment: see {@link proxiesFromEnvironment}.
 * @param env the environment variables; default: those of this process
 * @throws ConfigurationError when the URL is invalid, more than one credential is set, a credential is incomplete, a
 *   file cannot be read, or GATEHOUSE_RETRY_TIMEOUT is not a number of seconds
 */
export function credentialsFromEnvironment(env: Environment = process.env): EnvironmentSettings {
  const url = environmentValue(env, "GATEHOUSE_URL");
  if (url !== undefined) serviceAddress(url, "GATEHOUSE_URL");
  const ca = env.GATEHOUSE_CA_FILE ? contentOf(env.GATEHOUSE_CA_FILE, "GATEHOUSE_CA_FILE") : undefined;
  const tenant = environmentValue(env, "GATEHOUSE_TENANT");
  const credential = credentialFrom(env, tenant);
  const retry = retryFrom(env);
  return {
    ...(url !== undefined && { url }),
    ...(ca !== undefined && { ca }),
    ...(credential && { credential }),
    ...(tenant !== undefined && { tenant }),
    ...(retry && { retry }),
    ...(PROXY_VARIABLES.some((name) => env[name]) && { proxyFor: proxiesFromEnvironment(env) }),
  };
}

function retryFrom(env: Environment): EnvironmentSettings["retry"] {
  const seconds = environmentValue(env, "GATEHOUSE_RETRY_TIMEOUT");
  if (seconds === undefined) return undefined;
  if (!/^\d{1,5}$/.test(seconds)) {
    throw new ConfigurationError("must be a whole number of seconds, at most 99999", {
      field: ["GATEHOUSE_RETRY_TIMEOUT"],
      remedy: "omit the unit",
    });
  }
  const budget = Number(seconds) * 1000;
  return { budget, firstContact: budget };
}

function credentialFrom(env: Environment, tenant: string | undefined): Credential | undefined {
  const apiKey = environmentValue(env, "GATEHOUSE_API_KEY");
  const token = environmentValue(env, "GATEHOUSE_TOKEN");
  const username = environmentValue(env, "GATEHOUSE_USERNAME");
  const password = environmentValue(env, "GATEHOUSE_PASSWORD");
  const secret = environmentValue(env, "GATEHOUSE_TOTP_SECRET");
  const oidc = environmentValue(env, "GATEHOUSE_OIDC");
  const kinds = [
    ...(apiKey === undefined ? [] : ["GATEHOUSE_API_KEY"]),
    ...(token === undefined ? [] : ["GATEHOUSE_TOKEN"]),
    ...(username === undefined && password === undefined ? [] : ["GATEHOUSE_USERNAME/GATEHOUSE_PASSWORD"]),
    ...(oidc === undefined ? [] : ["GATEHOUSE_OIDC"]),
  ];
  if (kinds.length > 1) {
    throw new ConfigurationError(`${kinds.join(" and ")} are set`, {
      field: ["credential"],
      remedy: "set only one of them, or its _FILE form",
    });
  }
  if (username !== undefined || password !== undefined) {
    if (username === undefined || password === undefined) {
      const [has, lacks] = username === undefined ? ["PASSWORD", "USERNAME"] : ["USERNAME", "PASSWORD"];
      throw new ConfigurationError(`is set without GATEHOUSE_${lacks}`, {
        field: [`GATEHOUSE_${has}`],
        remedy: `also set GATEHOUSE_${lacks}`,
      });
    }
    if (secret !== undefined) totpSecret(secret, "GATEHOUSE_TOTP_SECRET");
    return {
      ...passwordCredential({ username, password, ...(secret !== undefined && { totpSecret: secret }) }),
      settings: setIn(env, "GATEHOUSE_USERNAME", "GATEHOUSE_PASSWORD"),
    };
  }
  if (secret !== undefined) {
    throw new ConfigurationError("is set without GATEHOUSE_USERNAME/GATEHOUSE_PASSWORD", {
      field: ["GATEHOUSE_TOTP_SECRET"],
    });
  }
  if (oidc !== undefined) return workloadFrom(env, oidc, tenant);
  const part = OIDC_PARTS.find((name) => env[name]);
  if (part !== undefined) {
    throw new ConfigurationError("is set without GATEHOUSE_OIDC", {
      field: [part],
      remedy: `set GATEHOUSE_OIDC to ${OIDC_KINDS}, or remove ${part}`,
    });
  }
  if (apiKey !== undefined)
    return { ...apiKeyCredential(apiKey, "GATEHOUSE_API_KEY"), settings: setIn(env, "GATEHOUSE_API_KEY") };
  if (token === undefined) return undefined;
  return { ...tokenCredential(token, "GATEHOUSE_TOKEN"), settings: setIn(env, "GATEHOUSE_TOKEN") };
}

/** Returns the names of the variables that contain the values: each variable itself, or its `_FILE` form. */
const setIn = (env: Environment, ...names: readonly string[]): string[] =>
  names.map((name) => (env[name] ? name : `${name}_FILE`));

const OIDC_KINDS = "github, gitlab or file";

/** The variables that have no effect without GATEHOUSE_OIDC. */
const OIDC_PARTS = ["GATEHOUSE_OIDC_TOKEN", "GATEHOUSE_OIDC_TOKEN_FILE", "GATEHOUSE_OIDC_AUDIENCE"];

/** The variables that GitHub Actions sets in a job with the permission `id-token: write`. */
export const GITHUB_OIDC_VARIABLES = [
  "ACTIONS_ID_TOKEN_REQUEST_URL",
  "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
] as const;

function workloadFrom(env: Environment, oidc: string, tenant: string | undefined): WorkloadCredential {
  if (tenant === undefined) {
    throw new ConfigurationError("is set without GATEHOUSE_TENANT", {
      field: ["GATEHOUSE_OIDC"],
      remedy: "set GATEHOUSE_TENANT to the id of the namespace that trusts the workload",
    });
  }
  // The remedy for a missing variable depends on the pipeline.
  const required = (name: string, value: string | undefined, remedy: string): string => {
    if (value) return value;
    throw new ConfigurationError(`is not set, but GATEHOUSE_OIDC is ${oidc}`, {
      field: [name],
      remedy,
    });
  };
  switch (oidc) {
    case "github": {
      const remedy =
        "add the permission id-token: write to the job. Jobs of pull requests from forks cannot have this permission";
      const [url, requestToken] = GITHUB_OIDC_VARIABLES.map((name) => required(name, env[name], remedy));
      const audience = environmentValue(env, "GATEHOUSE_OIDC_AUDIENCE");
      const source = { kind: "github", url: url as string, requestToken: requestToken as string } as const;
      return workloadCredential({
        tenant,
        source: audience === undefined ? source : { ...source, audience },
      });
    }
    case "gitlab": {
      const name = "GATEHOUSE_OIDC_TOKEN";
      const remedy =
        "add GATEHOUSE_OIDC_TOKEN to id_tokens of the job, with the audience of the trusted workload as aud";
      const token = required(name, environmentValue(env, name), remedy);
      return workloadCredential({ tenant, source: { kind: "token", token } });
    }
    case "file": {
      const name = "GATEHOUSE_OIDC_TOKEN_FILE";
      const path = required(name, env[name], "set it to the path of a file with a token");
      contentOf(path, name);
      return workloadCredential({ tenant, source: { kind: "file", path } });
    }
    default:
      throw new ConfigurationError(`must be ${OIDC_KINDS}, not ${JSON.stringify(oidc)}`, {
        field: ["GATEHOUSE_OIDC"],
        value: oidc,
      });
  }
}

/**
 * The claims that the client reads from a token (rules section 2). Only the server can check the token's signature.
 */
export interface TokenClaims {
  readonly tenant?: string;
  readonly userId?: string;
  /** Time of issue of the token. */
  readonly issuedAt?: Date;
  /** Expiry of the token. */
  readonly expiresAt?: Date;
}

function text(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Reads the payload of a JWT without checking its signature. Returns undefined if the token is not a JWT. */
export function readPayload(token: string): Readonly<Record<string, unknown>> | undefined {
  const [, payload, signature] = token.split(".");
  if (!payload || signature === undefined) return undefined;
  let claims: unknown;
  try {
    claims = parseJson(Buffer.from(payload, "base64url").toString("utf8"));
  } catch {
    // A token whose payload is not JSON is not a JWT. The client does not reject such a token, because only the server
    // can decide whether a token is valid.
    return undefined;
  }
  return typeof claims === "object" && claims !== null ? (claims as Record<string, unknown>) : undefined;
}

function timeOf(seconds: unknown): Date | undefined {
  const time = typeof seconds === "number" ? new Date(seconds * 1000) : undefined;
  return time && !Number.isNaN(time.getTime()) ? time : undefined;
}

/** Reads the claims of a JWT without checking its signature. Returns undefined if the token is not a JWT. */
export function readClaims(token: string): TokenClaims | undefined {
  const payload = readPayload(token);
  if (!payload) return undefined;
  const { tenant, id, iat, exp } = payload;
  const [issuedAt, expiresAt] = [timeOf(iat), timeOf(exp)];
  return {
    ...(text(tenant) && { tenant: text(tenant) }),
    ...(text(id) && { userId: text(id) }),
    ...(issuedAt && { issuedAt }),
    ...(expiresAt && { expiresAt }),
  };
}

/**
 * Returns the time at which a token expired; undefined if the token has not expired at `now`, in milliseconds since
 * 1970.
 */
export function expiredAt(token: string, now: number): Date | undefined {
  const end = readClaims(token)?.expiresAt;
  return end && end.getTime() <= now ? end : undefined;
}
