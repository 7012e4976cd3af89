import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileFailureText, type UnknownVariable } from "@gatehouse-access/sdk/errors";
import type { z } from "zod";
import { isLoopback } from "../addresses.ts";
import type { DatabaseLocation } from "../db/Database.ts";
import type { ExternalParts } from "../files/backupFile.ts";
import { SECRET_FILE } from "../files/dataFolder.ts";
import { readSecretFile } from "../files/readSecretFile.ts";
import type { MailConfig } from "../mail/mailers.ts";
import { OperatorError, problemsOf, reasonOf } from "../OperatorError.ts";
import type { Setting } from "./setting.ts";
import { type SettingName, type SettingValues, settings } from "./settings.ts";
import { unknownSettings } from "./unknownVariables.ts";

/**
 * Settings that {@link ServiceSettings} excludes. Secrets are in separate fields of {@link Config}, and the checked
 * SAML settings are in {@link SamlSettings}.
 */
type Withheld =
  | "databaseUrl"
  | "secret"
  | "internalToken"
  | "smtpUrl"
  | Extract<SettingName, `saml${string}`>;

/** The settings that the service uses. Each number has the unit that the table of settings specifies. */
export interface ServiceSettings extends Omit<SettingValues, Withheld> {
  /** SAML settings. Undefined if SAML is off. */
  readonly saml: SamlSettings | undefined;
}

/** The SAML 2.0 identity provider whose users may log in. */
export interface SamlSettings {
  readonly idpEntityId: string;
  /** Address of the identity provider to which browsers send login requests (binding HTTP-Redirect). */
  readonly ssoUrl: string;
  /** The provider's certificates in PEM form. Their keys verify the provider's signatures. */
  readonly certificates: readonly string[];
  /** Names of the attributes that contain a user's e-mail address and name. */
  readonly emailAttribute: string;
  readonly nameAttribute: string;
  /** True if a user of the identity provider may log in as an existing user with the same e-mail address. */
  readonly linkUsers: boolean;
  /** The service's public origin, without a trailing slash. */
  readonly serviceUrl: string;
}

/** The configuration of one process of the service. */
export interface Config {
  readonly database: DatabaseLocation;
  /** Instance secret. If undefined, the service uses the secret in the data folder. */
  readonly secret: string | undefined;
  /** TLS files. Undefined if the service uses plain HTTP. */
  readonly tls: TlsFiles | undefined;
  /** Listener for internal operations. Undefined if the service does not serve these operations. */
  readonly internal: InternalConfig | undefined;
  readonly mail: MailConfig;
  /** The parts of the configuration that a backup does not contain. The backup names them. */
  readonly external: ExternalParts;
  readonly settings: ServiceSettings;
  /** Variables that are probably misspelled settings. */
  readonly unknownVariables: readonly UnknownVariable[];
}

/** Paths of a certificate with its chain, and of its private key. Both files are PEM files. */
export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** The listener for trusted services. */
export interface InternalConfig {
  readonly host: string;
  /** Port. 0 selects any free port. */
  readonly port: number;
  /** Token that each request for an internal operation must contain. */
  readonly token: string;
  /** Address at which other instances reach the listener. Undefined if other instances cannot reach the listener. */
  readonly peerUrl: string | undefined;
}

type Environment = Readonly<Record<string, string | undefined>>;
/** Values of flags, by setting name. */
export type Flags = Readonly<Partial<Record<SettingName, string>>>;

/** The error for one or more invalid settings. The message has one line for each invalid setting. */
export class ConfigError extends OperatorError {
  override readonly name = "ConfigError";
}

type Reading<T> = { readonly value: T } | { readonly problem: string };

/** Reads a setting. The flag overrides the environment variable. An empty variable is treated as unset. */
function read(setting: Setting, flag: string | undefined, environment: Environment): Reading<unknown> {
  const refused = flag === undefined ? undefined : setting.refusedAsFlag?.(flag);
  if (refused) {
    return {
      problem: `${setting.flag}: ${refused}; set ${setting.variable} or ${setting.variable}_FILE instead`,
    };
  }
  const variable = environment[setting.variable] || undefined;
  const file = (setting.secret && environment[`${setting.variable}_FILE`]) || undefined;
  if (variable !== undefined && file !== undefined) {
    return { problem: `${setting.variable} and ${setting.variable}_FILE are both set. Set only one of them` };
  }
  let text: string | undefined;
  try {
    text = flag ?? variable ?? (file === undefined ? setting.fallback : readSecretFile(file));
  } catch (error) {
    return { problem: `${setting.variable}_FILE cannot be used: ${reasonOf(error)}` };
  }
  const parsed = setting.schema.safeParse(text);
  if (parsed.success) return { value: parsed.data };
  const other = setting.flag === undefined ? "" : ` (flag ${setting.flag})`;
  const source =
    flag === undefined ? `${setting.variable}${other}` : `${setting.flag} (variable ${setting.variable})`;
  const shown = setting.secret ? "has an invalid value" : `is ${JSON.stringify(text)}`;
  if (text === undefined) return { problem: `${source} is not set. Set it to ${setting.allowed}` };
  return { problem: `${source} ${shown}. Set it to ${setting.allowed}` };
}

/**
 * Reads, from its environment variable, a setting that is not in the table of the service's settings.
 * @throws ConfigError the value is invalid, or a required value is missing
 */
export function readVariable<T extends z.ZodType>(
  setting: Setting<T>,
  environment: Environment,
): z.output<T> {
  const reading = read(setting, undefined, environment);
  if ("problem" in reading) throw new ConfigError(reading.problem);
  return reading.value as z.output<T>;
}

/**
 * Returns the location of the database that the setting's value specifies. The default is the file `gatehouse.db` in
 * the data folder.
 */
export function databaseAt(url: string | undefined, dataDir: string, connections: number): DatabaseLocation {
  if (url === undefined) return { file: join(dataDir, "gatehouse.db") };
  return url.startsWith("file:") ? { file: resolve(url.slice("file:".length)) } : { url, connections };
}

/**
 * Reads the settings of the listener for trusted services.
 * @throws ConfigError the peer URL is set without the internal port, or the internal port is set without the token.
 *   Without a token, any client could use internal operations.
 */
function internalListener({
  internalHost,
  internalPort,
  internalToken,
  peerUrl,
}: SettingValues): InternalConfig | undefined {
  if (internalPort === undefined) {
    if (peerUrl === undefined) return undefined;
    const { peerUrl: url, internalPort: port } = settings;
    throw new ConfigError(
      `${url.variable} (flag ${url.flag}) is set without ${port.variable} (flag ${port.flag}), which must be ${port.allowed}`,
    );
  }
  if (internalToken === undefined) {
    const { internalPort: port, internalToken: token } = settings;
    throw new ConfigError(
      `${port.variable} (flag ${port.flag}) is set without ${token.variable} or ${token.variable}_FILE, ` +
        `which must be ${token.allowed}`,
    );
  }
  return { host: internalHost, port: internalPort, token: internalToken, peerUrl };
}

/**
 * Reads the given settings.
 * @throws ConfigError the message lists every invalid value, with its variable, its flag and the allowed values
 */
export function readSettings<K extends SettingName>(
  names: readonly K[],
  environment: Environment,
  flags: Flags,
): Pick<SettingValues, K> {
  const values: Partial<Record<SettingName, unknown>> = {};
  const problems: string[] = [];
  for (const name of names) {
    const reading = read(settings[name], flags[name], environment);
    if ("problem" in reading) problems.push(reading.problem);
    else values[name] = reading.value;
  }
  if (problems.length > 0) throw new ConfigError(problems.join("\n"));
  return values as Pick<SettingValues, K>;
}

/**
 * Reads the settings of the TLS files.
 * @throws ConfigError only one of the two files is set
 */
function tlsFiles({ tlsCertFile, tlsKeyFile }: SettingValues): TlsFiles | undefined {
  if (tlsCertFile && tlsKeyFile) return { certFile: tlsCertFile, keyFile: tlsKeyFile };
  if (!tlsCertFile && !tlsKeyFile) return undefined;
  const { tlsCertFile: cert, tlsKeyFile: key } = settings;
  throw new ConfigError(
    `${cert.variable} (flag ${cert.flag}) and ${key.variable} (flag ${key.flag}) must be set together`,
  );
}

/** Sender address of mails that the service writes to files instead of sending them. */
const LOCAL_SENDER = "gatehouse@localhost";

/**
 * Reads the configuration of outgoing mails.
 * @throws ConfigError a mail server is set without a sender address
 */
function mail({ smtpUrl, smtpTls, mailFrom }: SettingValues): MailConfig {
  if (smtpUrl === undefined) return { server: undefined, from: mailFrom ?? LOCAL_SENDER };
  if (mailFrom === undefined) {
    const { smtpUrl: url, mailFrom: from } = settings;
    throw new ConfigError(
      `${url.variable} is set without ${from.variable} (flag ${from.flag}), which must be ${from.allowed}`,
    );
  }
  // Do not check the certificate of a mail server on the same machine: an attacker cannot intercept local traffic, and
  // local servers rarely have a valid certificate.
  const local = smtpUrl.host === "localhost" || isLoopback(smtpUrl.host);
  return { server: { ...smtpUrl, tls: local ? "unchecked" : smtpTls }, from: mailFrom };
}

/**
 * Checks that a cloud instance has a public address for the links in its mails. The service does not use the Host
 * header of a request for these links. Otherwise, the sender of the request could choose the server that receives the
 * token in the link.
 * @throws ConfigError a cloud instance has no public address
 */
function checkPublicUrl({ edition, publicUrl }: SettingValues): void {
  if (edition !== "cloud" || publicUrl !== undefined) return;
  const setting = settings.publicUrl;
  throw new ConfigError(
    `${setting.variable} (flag ${setting.flag}) is not set. The cloud edition sends mails with links to this address. ` +
      `It must be ${setting.allowed}`,
  );
}

/**
 * Checks the address of the console.
 * @throws ConfigError the pages are off, so the address would have no effect. Also thrown if the console and the
 *   service have the same origin, because `/login` would redirect to itself.
 */
function checkConsole({ consoleUrl, publicUrl, pages }: SettingValues): void {
  if (consoleUrl === undefined) return;
  const { consoleUrl: console, publicUrl: own, pages: served } = settings;
  const name = `${console.variable} (flag ${console.flag})`;
  if (!pages) {
    throw new ConfigError(
      `${name} has no effect while ${served.variable} (flag ${served.flag}) is off. Set ${served.variable} to on, or remove ${console.variable}`,
    );
  }
  if (consoleUrl === publicUrl) {
    throw new ConfigError(
      `${name} must differ from ${own.variable} (flag ${own.flag}), because /login would redirect to itself. ` +
        `If a proxy serves the console at this address, set ${served.variable} to off instead`,
    );
  }
}

/**
 * Reads the SAML settings.
 * @throws ConfigError a required SAML setting is missing, the edition does not support SAML, or the certificates are
 * unusable
 */
function samlSettings(values: SettingValues): SamlSettings | undefined {
  const { samlIdpEntityId: idpEntityId, samlSsoUrl: ssoUrl, samlCertificateFile: file, publicUrl } = values;
  if (!idpEntityId && !ssoUrl && !file) return undefined;
  const names = ["samlIdpEntityId", "samlSsoUrl", "samlCertificateFile", "publicUrl"] as const;
  if (!idpEntityId || !ssoUrl || !file || !publicUrl) {
    const list = names.map((name) => `${settings[name].variable} (flag ${settings[name].flag})`).join(", ");
    throw new ConfigError(`SAML needs all of these settings: ${list}`);
  }
  if (values.edition === "community")
    throw new ConfigError(
      `${settings.samlIdpEntityId.variable} is set, but the community edition does not support SAML`,
    );
  const { samlEmailAttribute: emailAttribute, samlNameAttribute: nameAttribute } = values;
  const linkUsers = values.samlLinkUsers;
  const certificates = certificatesIn(file);
  return {
    idpEntityId,
    ssoUrl,
    certificates,
    emailAttribute,
    nameAttribute,
    linkUsers,
    serviceUrl: publicUrl,
  };
}

const BEGIN = "-----BEGIN CERTIFICATE-----";
/** Minimum length of a trusted RSA key, in bits. */
const RSA_BITS = 2048;

/**
 * Reads the certificates from a PEM file. The service ignores the validity dates of the certificates, and trusts every
 * key in this file as a key of the identity provider.
 * @throws ConfigError the file is unreadable, contains no certificate, or contains a certificate with a weak key
 */
function certificatesIn(file: string): readonly string[] {
  const { variable, allowed } = settings.samlCertificateFile;
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    throw new ConfigError(fileFailureText("read", `${file} (${variable})`, error));
  }
  try {
    const [, ...texts] = text.split(BEGIN);
    if (texts.length === 0) throw new Error("the file contains no certificate in PEM form");
    return texts.map((text) => {
      const certificate = new X509Certificate(BEGIN + text);
      const { asymmetricKeyType: type, asymmetricKeyDetails: details } = certificate.publicKey;
      if (type !== "rsa" || (details?.modulusLength ?? 0) < RSA_BITS)
        throw new Error(`the file contains a certificate without an RSA key of at least ${RSA_BITS} bits`);
      return certificate.toString();
    });
  } catch (error) {
    throw new ConfigError(`${variable} is ${JSON.stringify(file)}: ${reasonOf(error)}. Set it to ${allowed}`);
  }
}

/**
 * Settings that refer to data in the backup, or that a restore reads by itself. The manifest of a backup therefore does
 * not list them as external.
 */
const RESTORED: readonly SettingName[] = ["databaseUrl", "secret", "sshHostKeyFile"];

function externalParts(values: SettingValues): ExternalParts {
  const { variable } = settings.secret;
  const isExternal = (name: SettingName) => {
    const { value, secret } = settings[name];
    return (value === "file" || secret === true) && values[name] !== undefined && !RESTORED.includes(name);
  };
  return {
    secret:
      values.secret === undefined ? join(values.dataDir, SECRET_FILE) : `${variable} or ${variable}_FILE`,
    settings: (Object.keys(settings) as SettingName[])
      .filter(isExternal)
      .map((name) => settings[name].variable),
  };
}

/**
 * The functions that process several settings together. Some check a combination of settings, and the others read a
 * part of the configuration.
 */
const PARTS = {
  publicUrl: checkPublicUrl,
  console: checkConsole,
  tls: tlsFiles,
  internal: internalListener,
  mail,
  saml: samlSettings,
};

/**
 * Calls each function with the values of the settings, and returns the results by name.
 * @throws ConfigError the message has one line for each function that throws
 */
function resultsOf<T extends Readonly<Record<string, (values: SettingValues) => unknown>>>(
  functions: T,
  values: SettingValues,
): { readonly [Name in keyof T]: ReturnType<T[Name]> } {
  const results: Record<string, unknown> = {};
  const problems = problemsOf(
    Object.entries(functions).map(([name, read]) => () => {
      results[name] = read(values);
    }),
  );
  if (problems.length > 0) throw new ConfigError(problems.join("\n"));
  return results as { readonly [Name in keyof T]: ReturnType<T[Name]> };
}

/**
 * Reads the configuration of the service from the environment and the flags of `serve`.
 * @throws ConfigError see {@link readSettings}
 */
export function readConfig(environment: Environment, flags: Flags): Config {
  const values = readSettings(Object.keys(settings) as SettingName[], environment, flags);
  const parts = resultsOf(PARTS, values);
  const { databaseUrl, secret, internalToken: _token, smtpUrl: _url, ...open } = values;
  const others = Object.fromEntries(Object.entries(open).filter(([name]) => !name.startsWith("saml")));
  return {
    database: databaseAt(databaseUrl, values.dataDir, values.databaseConnections),
    secret,
    tls: parts.tls,
    internal: parts.internal,
    mail: parts.mail,
    external: externalParts(values),
    settings: { ...(others as Omit<SettingValues, Withheld>), saml: parts.saml },
    unknownVariables: unknownSettings(Object.keys(environment)),
  };
}
