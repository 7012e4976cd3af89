import { join, resolve } from "node:path";
import { OperatorError } from "./OperatorError.ts";
import type { ServiceSettings } from "./services.ts";
import { type Setting, type SettingName, type SettingValues, settings } from "./settings.ts";
import type { TlsFiles } from "./tls.ts";

export interface MetricsConfig {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly tokenFile: string | undefined;
}

/** How one process of the service runs. */
export interface Config {
  readonly dataDir: string;
  readonly databaseFile: string;
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** Undefined: plain HTTP. */
  readonly tls: TlsFiles | undefined;
  /** Where metrics are served; undefined: nowhere. */
  readonly metrics: MetricsConfig | undefined;
  readonly logLevel: SettingValues["logLevel"];
  /** In milliseconds. */
  readonly shutdownTimeout: number;
  readonly service: ServiceSettings;
}

export type Environment = Readonly<Record<string, string | undefined>>;
/** Values of flags, by the name of their setting. */
export type Flags = Readonly<Partial<Record<SettingName, string>>>;

/** One or more settings have a wrong value; the message has a line for each. */
export class ConfigError extends OperatorError {
  override readonly name = "ConfigError";
}

type Reading<T> = { readonly value: T } | { readonly problem: string };

/** A flag wins over its variable; an empty variable counts as one that is not set. */
function read(setting: Setting, flag: string | undefined, environment: Environment): Reading<unknown> {
  const variable = environment[setting.variable] || undefined;
  const text = flag ?? variable ?? setting.fallback;
  const parsed = setting.schema.safeParse(text);
  if (parsed.success) return { value: parsed.data };
  const source =
    flag === undefined
      ? `${setting.variable} (flag ${setting.flag})`
      : `${setting.flag} (variable ${setting.variable})`;
  const shown = setting.secret ? "has a value that cannot be used" : `is ${JSON.stringify(text)}`;
  return { problem: `${source} ${shown}: it must be ${setting.allowed}` };
}

/**
 * The values of the given settings.
 * @throws ConfigError naming every wrong one, with its variable and flag and what is allowed
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

/**
 * How the service shall run, from the environment and the flags of `serve`.
 * @throws ConfigError see {@link readSettings}
 */
export function readConfig(environment: Environment, flags: Flags): Config {
  const values = readSettings(Object.keys(settings) as SettingName[], environment, flags);
  const dataDir = resolve(values.dataDir);
  return {
    dataDir,
    databaseFile: resolve(values.databaseUrl?.slice("file:".length) ?? join(dataDir, "gatehouse.db")),
    host: values.host,
    port: values.port,
    tls: tlsFiles(values),
    metrics: values.metricsAddress && {
      ...values.metricsAddress,
      tokenFile: values.metricsTokenFile && resolve(values.metricsTokenFile),
    },
    logLevel: values.logLevel,
    shutdownTimeout: values.shutdownTimeout * 1000,
    service: {
      edition: values.edition,
      maximumLockoutMinutes: values.maximumLockout,
      sshEndpoint: values.sshEndpoint,
      apiEndpoint: values.apiEndpoint,
      publicUrl: values.publicUrl,
      trustedProxies: values.trustedProxies ?? [],
      limits: {
        loginsPerAddress: values.loginsPerAddress,
        loginsPerAccount: values.loginsPerAccount,
        reportsPerAddress: values.reportsPerAddress,
      },
      corsOrigins: values.corsOrigins ?? [],
    },
  };
}
