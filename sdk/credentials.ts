import { readFileSync } from "node:fs";
import { inspect } from "node:util";
import * as OTPAuth from "otpauth";
import { ConfigurationError, fileFailure } from "./errors.ts";
import { parseJson } from "./json.ts";
import type { RetryPolicy } from "./retry.ts";

/** A value that is hidden when it is printed, inspected, or converted to a string or JSON. */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** Returns the secret value. Use the value only in requests. */
  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return "[secret]";
  }

  toJSON(): string {
    return "[secret]";
  }

  [inspect.custom](): string {
    return "[secret]";
  }
}

/** An API key. It is valid for one namespace, and cannot call operations that require a user. */
export interface ApiKeyCredential {
  readonly kind: "apiKey";
  readonly key: Secret;
}

/** A user's token, which expires after several days. */
export interface TokenCredential {
  readonly kind: "token";
  readonly token: Secret;
}

/** A user's name and password. The client logs in when it first needs a token. */
export interface PasswordCredential {
  readonly kind: "password";
  /** User name or e-mail. */
  readonly username: string;
  readonly password: Secret;
  /** TOTP secret of the user, in base32; required if the user has MFA. */
  readonly totpSecret?: Secret;
}

/** A credential of a caller (rules section 1). */
export type Credential = ApiKeyCredential | TokenCredential | PasswordCredential;

function headerValue(text: string, what: string): Secret {
  if (!/^[\x21-\x7e]+$/.test(text)) {
    throw new ConfigurationError("is empty, or contains white space or characters outside ASCII", {
      field: [what],
    });
  }
  return new Secret(text);
}

/**
 * Creates the credential of an API key.
 * @throws ConfigurationError when the key cannot be sent in a header
 */
export function apiKeyCredential(key: string): ApiKeyCredential {
  return { kind: "apiKey", key: headerValue(key, "apiKey") };
}

/**
 * Creates the credential of a token. The prefix `Bearer` is optional.
 * @throws ConfigurationError when the token cannot be sent in a header
 */
export function tokenCredential(token: string): TokenCredential {
  return { kind: "token", token: headerValue(token.replace(/^Bearer\s+/i, ""), "token") };
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
    throw new ConfigurationError("user name and password must not be empty", { field: ["credential"] });
  }
  return {
    kind: "password",
    username: input.username,
    password: new Secret(input.password),
    ...(input.totpSecret !== undefined && { totpSecret: totpSecret(input.totpSecret) }),
  };
}

function totpSecret(text: string): Secret {
  const compact = text.replace(/[\s-]/g, "").replace(/=+$/, "").toUpperCase();
  if (!/^[A-Z2-7]+$/.test(compact) || OTPAuth.Secret.fromBase32(compact).bytes.length === 0) {
    throw new ConfigurationError("is not base32", { field: ["totpSecret"] });
  }
  return new Secret(compact);
}

/** Environment variables, as in `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Returns the value of a variable, or the content of the file whose path is in `<name>_FILE`, without the final
 * newline. An empty variable counts as absent.
 * @throws ConfigurationError when both variables are set, or when the file is empty or cannot be read
 */
export function environmentValue(env: Environment, name: string): string | undefined {
  const fileName = `${name}_FILE`;
  const value = env[name] || undefined;
  const path = env[fileName] || undefined;
  if (value !== undefined && path !== undefined) {
    throw new ConfigurationError(`${fileName} is also set`, {
      field: [name],
      remedy: "set only one of them",
    });
  }
  if (path === undefined) return value;
  return contentOf(path, fileName);
}

function contentOf(path: string, variable: string): string {
  let content: string;
  try {
    content = readFileSync(path, "utf8");
  } catch (cause) {
    // If the value is a URL instead of a path, the error omits it, because the URL may contain a secret.
    const isAddress = /^\w+:\/\//.test(path);
    const { detail, remedy } = fileFailure(
      "read",
      isAddress ? "the file (its path looks like a URL)" : path,
      cause,
    );
    throw new ConfigurationError(detail, {
      field: [variable],
      remedy: isAddress ? "Set it to the path of a file, not to an address." : remedy,
      ...(!isAddress && { cause }),
    });
  }
  const text = content.replace(/\r?\n$/, "");
  if (text === "") {
    throw new ConfigurationError(`${path} is empty`, { field: [variable] });
  }
  return text;
}

/** The settings of a client from environment variables. A setting without a variable is absent. */
export interface EnvironmentSettings {
  readonly url?: string;
  /** Certificates (PEM) of authorities to trust in addition to those that Node trusts. */
  readonly ca?: string;
  readonly credential?: Credential;
  /** Id of the default namespace of resources. */
  readonly tenant?: string;
  /** Limits for retries of requests. */
  readonly retry?: Pick<RetryPolicy, "budget" | "firstContact">;
}

/**
 * Reads the settings of a client from environment variables.
 * - GATEHOUSE_URL and GATEHOUSE_TENANT.
 * - GATEHOUSE_RETRY_TIMEOUT, in seconds. This time also replaces the shorter limit that applies until the client has
 *   reached the service for the first time.
 * - GATEHOUSE_CA_FILE, the path of a file.
 * - One credential: GATEHOUSE_API_KEY, GATEHOUSE_TOKEN, or GATEHOUSE_USERNAME with GATEHOUSE_PASSWORD (and
 *   GATEHOUSE_TOTP_SECRET for a user with MFA).
 * Every variable except GATEHOUSE_CA_FILE also has a `_FILE` form, which contains the path of a file with the value.
 * @param env the environment variables; default: those of this process
 * @throws ConfigurationError when there is more than one credential, a credential is incomplete, a file cannot be read,
 * or GATEHOUSE_RETRY_TIMEOUT is not a number of seconds
 */
export function credentialsFromEnvironment(env: Environment = process.env): EnvironmentSettings {
  const url = environmentValue(env, "GATEHOUSE_URL");
  const ca = env.GATEHOUSE_CA_FILE ? contentOf(env.GATEHOUSE_CA_FILE, "GATEHOUSE_CA_FILE") : undefined;
  const credential = credentialFrom(env);
  const tenant = environmentValue(env, "GATEHOUSE_TENANT");
  const retry = retryFrom(env);
  return {
    ...(url !== undefined && { url }),
    ...(ca !== undefined && { ca }),
    ...(credential && { credential }),
    ...(tenant !== undefined && { tenant }),
    ...(retry && { retry }),
  };
}

function retryFrom(env: Environment): EnvironmentSettings["retry"] {
  const seconds = environmentValue(env, "GATEHOUSE_RETRY_TIMEOUT");
  if (seconds === undefined) return undefined;
  if (!/^\d{1,5}$/.test(seconds)) {
    throw new ConfigurationError("must be a whole number of seconds, at most 99999", {
      field: ["GATEHOUSE_RETRY_TIMEOUT"],
    });
  }
  const budget = Number(seconds) * 1000;
  return { budget, firstContact: budget };
}

function credentialFrom(env: Environment): Credential | undefined {
  const apiKey = environmentValue(env, "GATEHOUSE_API_KEY");
  const token = environmentValue(env, "GATEHOUSE_TOKEN");
  const username = environmentValue(env, "GATEHOUSE_USERNAME");
  const password = environmentValue(env, "GATEHOUSE_PASSWORD");
  const secret = environmentValue(env, "GATEHOUSE_TOTP_SECRET");
  const kinds = [
    ...(apiKey === undefined ? [] : ["GATEHOUSE_API_KEY"]),
    ...(token === undefined ? [] : ["GATEHOUSE_TOKEN"]),
    ...(username === undefined && password === undefined ? [] : ["GATEHOUSE_USERNAME/GATEHOUSE_PASSWORD"]),
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
      throw new ConfigurationError(`is set without GATEHOUSE_${lacks}`, { field: [`GATEHOUSE_${has}`] });
    }
    return passwordCredential({ username, password, ...(secret !== undefined && { totpSecret: secret }) });
  }
  if (secret !== undefined) {
    throw new ConfigurationError("is set without GATEHOUSE_USERNAME/GATEHOUSE_PASSWORD", {
      field: ["GATEHOUSE_TOTP_SECRET"],
    });
  }
  if (apiKey !== undefined) return apiKeyCredential(apiKey);
  return token === undefined ? undefined : tokenCredential(token);
}

/** The claims of a token that the client reads (rules section 2). Only the server can check the signature. */
export interface TokenClaims {
  readonly tenant?: string;
  readonly userId?: string;
  /** Expiry of the token. */
  readonly expiresAt?: Date;
}

function text(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Reads the claims of a JWT without checking its signature. Returns undefined if the text is not a JWT. */
export function readClaims(token: string): TokenClaims | undefined {
  const [, payload, signature] = token.split(".");
  if (!payload || signature === undefined) return undefined;
  let claims: unknown;
  try {
    claims = parseJson(Buffer.from(payload, "base64url").toString("utf8"));
  } catch {
    // A text whose payload is not JSON is not a JWT. The client does not reject the token: the server decides whether
    // the token is valid.
    return undefined;
  }
  if (typeof claims !== "object" || claims === null) return undefined;
  const { tenant, id, exp } = claims as Record<string, unknown>;
  const expiresAt = typeof exp === "number" ? new Date(exp * 1000) : undefined;
  return {
    ...(text(tenant) && { tenant: text(tenant) }),
    ...(text(id) && { userId: text(id) }),
    ...(expiresAt && !Number.isNaN(expiresAt.getTime()) && { expiresAt }),
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
