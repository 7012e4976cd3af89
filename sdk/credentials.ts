import { readFileSync } from "node:fs";
import { inspect } from "node:util";
import * as OTPAuth from "otpauth";
import { ConfigurationError } from "./errors.ts";
import { parseJson } from "./json.ts";
import type { RetryPolicy } from "./retry.ts";

/** A value that is not shown when it is printed, inspected, or converted to a string or JSON. */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** The value itself; hand it to the network only. */
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

/** An API key: it belongs to one namespace, and cannot do what takes a user. */
export interface ApiKeyCredential {
  readonly kind: "apiKey";
  readonly key: Secret;
}

/** A user's token, which expires after days. */
export interface TokenCredential {
  readonly kind: "token";
  readonly token: Secret;
}

/** A user's name and password; the client logs in when it first needs a token. */
export interface PasswordCredential {
  readonly kind: "password";
  /** User name or e-mail. */
  readonly username: string;
  readonly password: Secret;
  /** Base32 secret of the user's second factor; needed when the user has MFA. */
  readonly totpSecret?: Secret;
}

/** What proves to the service who calls (rules section 1). */
export type Credential = ApiKeyCredential | TokenCredential | PasswordCredential;

function headerValue(text: string, what: string): Secret {
  if (!/^[\x21-\x7e]+$/.test(text)) {
    throw new ConfigurationError("is empty or has white space or characters outside ASCII", {
      field: [what],
    });
  }
  return new Secret(text);
}

/** The credential of an API key. @throws ConfigurationError when the key cannot be sent in a header */
export function apiKeyCredential(key: string): ApiKeyCredential {
  return { kind: "apiKey", key: headerValue(key, "apiKey") };
}

/**
 * The credential of a token, with or without `Bearer` before it.
 * @throws ConfigurationError when the token cannot be sent in a header
 */
export function tokenCredential(token: string): TokenCredential {
  return { kind: "token", token: headerValue(token.replace(/^Bearer\s+/i, ""), "token") };
}

/**
 * The credential of a user with a password, and with the secret of a second factor where the user has one.
 * @throws ConfigurationError when user name or password is empty, or the TOTP secret is not base32
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
 * The value of a variable, or the content of the file that `<name>_FILE` names, without its last newline. An empty
 * variable counts as absent.
 * @throws ConfigurationError when both are set, or the file cannot be read or is empty
 */
export function environmentValue(env: Environment, name: string): string | undefined {
  const fileName = `${name}_FILE`;
  const value = env[name] || undefined;
  const path = env[fileName] || undefined;
  if (value !== undefined && path !== undefined) {
    throw new ConfigurationError(`${fileName} is set too`, { field: [name], remedy: "set one of them" });
  }
  if (path === undefined) return value;
  return contentOf(path, fileName);
}

function contentOf(path: string, variable: string): string {
  let content: string;
  try {
    content = readFileSync(path, "utf8");
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? "unknown error";
    // An address where the path of a file was meant is a secret itself.
    const named = /^\w+:\/\//.test(path) ? "what should be the path of a file" : path;
    throw new ConfigurationError(`can not read ${named} (${code})`, {
      field: [variable],
      ...(named === path && { cause }),
    });
  }
  const text = content.replace(/\r?\n$/, "");
  if (text === "") {
    throw new ConfigurationError(`${path} is empty`, { field: [variable] });
  }
  return text;
}

/** What environment variables say of a service and its user; each part is absent where none says it. */
export interface EnvironmentSettings {
  readonly url?: string;
  /** Certificates (PEM) of authorities that are trusted beside those that Node trusts. */
  readonly ca?: string;
  readonly credential?: Credential;
  /** Id of the namespace of resources that name none. */
  readonly tenant?: string;
  /** For how long requests are repeated. */
  readonly retry?: Pick<RetryPolicy, "budget" | "firstContact">;
}

/**
 * Reads GATEHOUSE_URL, GATEHOUSE_TENANT, GATEHOUSE_RETRY_TIMEOUT (in seconds, also before the first contact), the file
 * that GATEHOUSE_CA_FILE names, and one credential: GATEHOUSE_API_KEY,
 * GATEHOUSE_TOKEN, or GATEHOUSE_USERNAME with GATEHOUSE_PASSWORD (and GATEHOUSE_TOTP_SECRET for a user with MFA). In
 * place of each of them but GATEHOUSE_CA_FILE, the same name with `_FILE` behind it may give the path of a file that
 * holds it.
 * @param env the environment variables; by default those of this process
 * @throws ConfigurationError when there is more than one credential, one is incomplete, a file cannot be read, or
 * GATEHOUSE_RETRY_TIMEOUT is no number of seconds
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
      remedy: "set one of them (each also as …_FILE)",
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

/** What the client reads of a token (rules section 2). It does not check the signature, which only the server can. */
export interface TokenClaims {
  readonly tenant?: string;
  readonly userId?: string;
  /** When the token expires. */
  readonly expiresAt?: Date;
}

function text(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** The claims of a JWT, which is not checked; undefined for a text that is no JWT. */
export function readClaims(token: string): TokenClaims | undefined {
  const [, payload, signature] = token.split(".");
  if (!payload || signature === undefined) return undefined;
  let claims: unknown;
  try {
    claims = parseJson(Buffer.from(payload, "base64url").toString("utf8"));
  } catch {
    // No JSON, so no JWT. The server decides what to make of such a token.
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

/** When a token expired, if that was before `now` (milliseconds); undefined for any other one. */
export function expiredAt(token: string, now: number): Date | undefined {
  const end = readClaims(token)?.expiresAt;
  return end && end.getTime() <= now ? end : undefined;
}
