import { join, resolve } from "node:path";
import type { z } from "zod";
import { isLoopback } from "../addresses.ts";
import type { DatabaseLocation } from "../db/Database.ts";
import { readSecretFile } from "../files/readSecretFile.ts";
import type { MailConfig } from "../mail/mailers.ts";
import { OperatorError, reasonOf } from "../OperatorError.ts";
import type { SamlSettings, ServiceSettings } from "../services.ts";
import { type Setting, type SettingName, type SettingValues, settings } from "./index.ts";
import { readSamlCertificates } from "./samlSettings.ts";

/** The listener for metrics. */
export interface MetricsConfig {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly tokenFile: string | undefined;
}

/** The configuration of one process of the service. */
export interface Config {
  readonly dataDir: string;
  readonly database: DatabaseLocation;
  /** Instance secret; undefined: that of the data folder. */
  readonly secret: string | undefined;
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** Undefined: plain HTTP. */
  readonly tls: TlsFiles | undefined;
  /** File with positions of IP addresses; undefined: they are unknown. */
  readonly geoipFile: string | undefined;
  /** Undefined: metrics are not served. */
  readonly metrics: MetricsConfig | undefined;
  /** Undefined: internal operations are not served. */
  readonly internal: InternalConfig | undefined;
  /** Undefined: there is no SSH entry. */
  readonly ssh: SshConfig | undefined;
  readonly mail: MailConfig;
  readonly logLevel: SettingValues["logLevel"];
  /** In days; 0: for ever. */
  readonly auditRetention: number;
  readonly sessionRetention: SessionRetention;
  /** How long logins may go on when the service is stopped, in milliseconds. */
  readonly drain: number;
  /** In milliseconds. */
  readonly shutdownTimeout: number;
  readonly service: ServiceSettings;
}

/** Paths of a certificate with its chain and of its private key, both PEM. */
export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** Retention after a session's last sign of life, in days; 0: for ever. */
export interface SessionRetention {
  readonly sessions: number;
  readonly recordings: number;
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

/** The SSH entry. */
export interface SshConfig {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** Undefined: the key of the data folder. */
  readonly hostKeyFile: string | undefined;
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
  if (tlsCertFile && tlsKeyFile) return { certFile: resolve(tlsCertFile), keyFile: resolve(tlsKeyFile) };
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

function certificatesIn(file: string): readonly string[] {
  try {
    return readSamlCertificates(resolve(file));
  } catch (error) {
    const { variable, allowed } = settings.samlCertificateFile;
    const why = reasonOf(error);
    throw new ConfigError(`${variable}: ${why}: it must be ${allowed}`);
  }
}

/**
 * The configuration of the service, from the environment and the flags of `serve`.
 * @throws ConfigError see {@link readSettings}
 */
export function readConfig(environment: Environment, flags: Flags): Config {
  const values = readSettings(Object.keys(settings) as SettingName[], environment, flags);
  const dataDir = resolve(values.dataDir);
  checkPublicUrl(values);
  return {
    dataDir,
    database: databaseAt(values.databaseUrl, dataDir, values.databaseConnections),
    secret: values.secret,
    host: values.host,
    port: values.port,
    internal: internalListener(values),
    ssh:
      values.sshPort === undefined
        ? undefined
        : {
            host: values.sshHost,
            port: values.sshPort,
            hostKeyFile: values.sshHostKeyFile && resolve(values.sshHostKeyFile),
          },
    auditRetention: values.auditRetention,
    sessionRetention: { sessions: values.sessionRetention, recordings: values.recordingRetention },
    tls: tlsFiles(values),
    mail: mail(values),
    geoipFile: values.geoipFile && resolve(values.geoipFile),
    metrics: values.metricsAddress && {
      ...values.metricsAddress,
      tokenFile: values.metricsTokenFile && resolve(values.metricsTokenFile),
    },
    logLevel: values.logLevel,
    drain: values.drain * 1000,
    shutdownTimeout: values.shutdownTimeout * 1000,
    service: {
      edition: values.edition,
      maximumLockoutMinutes: values.maximumLockout,
      maximumPendingDevices: values.maximumPendingDevices,
      maximumFirewallRules: values.maximumFirewallRules,
      maximumConnectors: values.maximumConnectors,
      maximumRecording: values.maximumRecording,
      maximumTunnels: values.maximumTunnels,
      tunnelsDomain: values.tunnelsDomain,
      agentImage: values.agentImage,
      sshEndpoint: values.sshEndpoint,
      ssh: {
        port: values.sshPort,
        environment: values.sshEnvironment,
        forwarding: values.sshForwarding,
        keepAlive: values.sshKeepAlive,
        startupsPerAddress: values.sshStartupsPerAddress,
        refusalsPerAddress: values.sshRefusalsPerAddress,
        memory: values.sshMemory,
      },
      endRefusedSessions: values.endRefusedSessions,
      apiEndpoint: values.apiEndpoint,
      publicUrl: values.publicUrl,
      saml: samlSettings(values),
      trustedProxies: values.trustedProxies ?? [],
      limits: {
        loginsPerAddress: values.loginsPerAddress,
        loginsPerAccount: values.loginsPerAccount,
        reportsPerAddress: values.reportsPerAddress,
        enrolmentsPerAddress: values.enrolmentsPerAddress,
      },
      listBacklog: values.listBacklog,
      corsOrigins: values.corsOrigins ?? [],
      pages: values.pages,
      billing: {
        gateway: values.billingGateway,
        timeout: values.billingTimeout * 1000,
        devicePrice: values.billingDevicePrice,
        currency: values.billingCurrency,
      },
    },
  };
}
