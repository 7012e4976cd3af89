import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { z } from "zod";
import { isLoopback } from "../addresses.ts";
import type { DatabaseLocation } from "../db/Database.ts";
import { readSecretFile } from "../files/readSecretFile.ts";
import type { MailConfig } from "../mail/mailers.ts";
import { OperatorError, reasonOf } from "../OperatorError.ts";
import type { Setting } from "./setting.ts";
import { type SettingName, type SettingValues, settings } from "./settings.ts";

/** Secrets, and the parts of {@link SamlSettings} before they are checked. */
type Withheld =
  | "databaseUrl"
  | "secret"
  | "internalToken"
  | "smtpUrl"
  | Extract<SettingName, `saml${string}`>;

/** The settings that the service works with, in the units of the table. */
export interface ServiceSettings extends Omit<SettingValues, Withheld> {
  /** Undefined: SAML is off. */
  readonly saml: SamlSettings | undefined;
}

/** The identity provider (SAML 2.0) whose users may log in. */
export interface SamlSettings {
  readonly idpEntityId: string;
  /** Address to which browsers bring requests (binding HTTP-Redirect). */
  readonly ssoUrl: string;
  /** Its certificates in PEM form; their keys verify its signatures. */
  readonly certificates: readonly string[];
  /** Names of the attributes with a user's e-mail address and name. */
  readonly emailAttribute: string;
  readonly nameAttribute: string;
  /** Whether the identity provider may log in as an existing user whose e-mail address it names. */
  readonly linkUsers: boolean;
  /** The service's public origin, without a slash at its end. */
  readonly serviceUrl: string;
}

/** The configuration of one process of the service. */
export interface Config {
  readonly database: DatabaseLocation;
  /** Instance secret; undefined: that of the data folder. */
  readonly secret: string | undefined;
  /** Undefined: plain HTTP. */
  readonly tls: TlsFiles | undefined;
  /** Undefined: internal operations are not served. */
  readonly internal: InternalConfig | undefined;
  readonly mail: MailConfig;
  readonly settings: ServiceSettings;
}

/** Paths of a certificate with its chain and of its private key, both PEM. */
export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** The listener for trusted services. */
export interface InternalConfig {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** The token that each request must carry. */
  readonly token: string;
  /** Where other instances reach the listener; undefined: they do not. */
  readonly peerUrl: string | undefined;
}

export type Environment = Readonly<Record<string, string | undefined>>;
/** Values of flags, by the names of their settings. */
export type Flags = Readonly<Partial<Record<SettingName, string>>>;

/** One or more settings have a wrong value; the message has a line for each. */
export class ConfigError extends OperatorError {
  override readonly name = "ConfigError";
}

type Reading<T> = { readonly value: T } | { readonly problem: string };

/** Reads a setting. A flag wins over its variable; an empty variable counts as not set. */
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
    return { problem: `${setting.variable} and ${setting.variable}_FILE are set: it must be one of them` };
  }
  let text: string | undefined;
  try {
    text = flag ?? variable ?? (file === undefined ? setting.fallback : readSecretFile(file));
  } catch (error) {
    return { problem: `${setting.variable}_FILE: ${reasonOf(error)}` };
  }
  const parsed = setting.schema.safeParse(text);
  if (parsed.success) return { value: parsed.data };
  const other = setting.flag === undefined ? "" : ` (flag ${setting.flag})`;
  const source =
    flag === undefined ? `${setting.variable}${other}` : `${setting.flag} (variable ${setting.variable})`;
  const shown = setting.secret ? "has a value that cannot be used" : `is ${JSON.stringify(text)}`;
  if (text === undefined) return { problem: `${source} is not set: it must be ${setting.allowed}` };
  return { problem: `${source} ${shown}: it must be ${setting.allowed}` };
}

/**
 * Reads a setting that does not belong to the service, from the environment.
 * @throws ConfigError when the value is wrong, or is missing although it is required
 */
export function readVariable<T extends z.ZodType>(
  setting: Setting<T>,
  environment: Environment,
): z.output<T> {
  const reading = read(setting, undefined, environment);
  if ("problem" in reading) throw new ConfigError(reading.problem);
  return reading.value as z.output<T>;
}

/** The location of the database: from the setting, else the file in the data folder. */
export function databaseAt(url: string | undefined, dataDir: string, connections: number): DatabaseLocation {
  if (url === undefined) return { file: join(dataDir, "gatehouse.db") };
  return url.startsWith("file:") ? { file: resolve(url.slice("file:".length)) } : { url, connections };
}

/** @throws ConfigError a peer URL without a port, or a port without a token, which would let everybody use internal operations */
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
      `${url.variable} (flag ${url.flag}) is set without ${port.variable} (flag ${port.flag}): it must be ${port.allowed}`,
    );
  }
  if (internalToken === undefined) {
    const { internalPort: port, internalToken: token } = settings;
    throw new ConfigError(
      `${port.variable} (flag ${port.flag}) is set without ${token.variable} or ${token.variable}_FILE: ` +
        `it must be ${token.allowed}`,
    );
  }
  return { host: internalHost, port: internalPort, token: internalToken, peerUrl };
}

/**
 * Reads the given settings.
 * @throws ConfigError naming every wrong value, with its variable and flag and the allowed values
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

/** @throws ConfigError one file without the other */
function tlsFiles({ tlsCertFile, tlsKeyFile }: SettingValues): TlsFiles | undefined {
  if (tlsCertFile && tlsKeyFile) return { certFile: tlsCertFile, keyFile: tlsKeyFile };
  if (!tlsCertFile && !tlsKeyFile) return undefined;
  const { tlsCertFile: cert, tlsKeyFile: key } = settings;
  throw new ConfigError(
    `${cert.variable} (flag ${cert.flag}) and ${key.variable} (flag ${key.flag}) must be given together`,
  );
}

/** Sender of mails that are written into files. */
const LOCAL_SENDER = "gatehouse@localhost";

/** @throws ConfigError a mail server without a sender address */
function mail({ smtpUrl, smtpTls, mailFrom }: SettingValues): MailConfig {
  if (smtpUrl === undefined) return { server: undefined, from: mailFrom ?? LOCAL_SENDER };
  if (mailFrom === undefined) {
    const { smtpUrl: url, mailFrom: from } = settings;
    throw new ConfigError(
      `${url.variable} is set without ${from.variable} (flag ${from.flag}): it must be ${from.allowed}`,
    );
  }
  // Between two processes of one machine nobody can listen, and a certificate for the server's name is rare.
  const local = smtpUrl.host === "localhost" || isLoopback(smtpUrl.host);
  return { server: { ...smtpUrl, tls: local ? "unchecked" : smtpTls }, from: mailFrom };
}

/**
 * Links in mails need a configured public address: the Host header of a request is not trusted, since its sender would
 * choose where a token goes.
 * @throws ConfigError a cloud instance without a public address
 */
function checkPublicUrl({ edition, publicUrl }: SettingValues): void {
  if (edition !== "cloud" || publicUrl !== undefined) return;
  const setting = settings.publicUrl;
  throw new ConfigError(
    `${setting.variable} (flag ${setting.flag}) is not set: the cloud edition sends mails with links to it; ` +
      `it must be ${setting.allowed}`,
  );
}

/** @throws ConfigError a part is missing, the edition has no SAML, or the certificates cannot be used */
function samlSettings(values: SettingValues): SamlSettings | undefined {
  const { samlIdpEntityId: idpEntityId, samlSsoUrl: ssoUrl, samlCertificateFile: file, publicUrl } = values;
  if (!idpEntityId && !ssoUrl && !file) return undefined;
  const names = ["samlIdpEntityId", "samlSsoUrl", "samlCertificateFile", "publicUrl"] as const;
  if (!idpEntityId || !ssoUrl || !file || !publicUrl) {
    const list = names.map((name) => `${settings[name].variable} (flag ${settings[name].flag})`).join(", ");
    throw new ConfigError(`SAML needs all of ${list}`);
  }
  if (values.edition === "community")
    throw new ConfigError(`${settings.samlIdpEntityId.variable} is set: the edition community has no SAML`);
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
 * The certificates of a PEM file, each as PEM. Their dates do not count: a certificate carries the identity provider's
 * key, which is trusted because it is in this file.
 * @throws ConfigError the file cannot be read, has no certificate, or one with a weak key
 */
function certificatesIn(file: string): readonly string[] {
  try {
    const [, ...texts] = readFileSync(file, "utf8").split(BEGIN);
    if (texts.length === 0) throw new Error(`${file} has no certificate in PEM form`);
    return texts.map((text) => {
      const certificate = new X509Certificate(BEGIN + text);
      const { asymmetricKeyType: type, asymmetricKeyDetails: details } = certificate.publicKey;
      if (type !== "rsa" || (details?.modulusLength ?? 0) < RSA_BITS)
        throw new Error(`${file} has a certificate whose key is no RSA key of ${RSA_BITS} bits or more`);
      return certificate.toString();
    });
  } catch (error) {
    const { variable, allowed } = settings.samlCertificateFile;
    throw new ConfigError(`${variable}: ${reasonOf(error)}: it must be ${allowed}`);
  }
}

/**
 * The configuration of the service, from the environment and the flags of `serve`.
 * @throws ConfigError see {@link readSettings}
 */
export function readConfig(environment: Environment, flags: Flags): Config {
  const values = readSettings(Object.keys(settings) as SettingName[], environment, flags);
  checkPublicUrl(values);
  const { databaseUrl, secret, internalToken: _token, smtpUrl: _url, ...open } = values;
  const others = Object.fromEntries(Object.entries(open).filter(([name]) => !name.startsWith("saml")));
  return {
    database: databaseAt(databaseUrl, values.dataDir, values.databaseConnections),
    secret,
    tls: tlsFiles(values),
    internal: internalListener(values),
    mail: mail(values),
    settings: { ...(others as Omit<SettingValues, Withheld>), saml: samlSettings(values) },
  };
}
