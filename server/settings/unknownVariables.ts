import { Command, CommanderError } from "commander";
import { settings } from "./settings.ts";

/** A variable of the environment that looks like a setting, but that no program of the project reads. */
export interface UnknownVariable {
  readonly variable: string;
  /** Names of similar settings, as text. Undefined without a similar setting. */
  readonly similar: string | undefined;
}

/** Variables of other commands and programs of the project, which may have the same environment as the service. */
const OTHERS: readonly string[] = [
  // `gatehouse-server migrate-to-postgresql`
  "TARGET_DATABASE_URL",
  "TARGET_DATABASE_URL_FILE",
  // The SDK and the provider. Each has a form for files, except the variables that contain a path.
  ...[
    "URL",
    "TENANT",
    "API_KEY",
    "TOKEN",
    "USERNAME",
    "PASSWORD",
    "TOTP_SECRET",
    "RETRY_TIMEOUT",
    "OIDC",
    "OIDC_TOKEN",
    "OIDC_AUDIENCE",
    "NOTIFY_URL",
  ].flatMap((name) => [name, `${name}_FILE`]),
  "CA_FILE",
  "PROJECT",
  "ENGINE",
  "IMPORT_IDS",
  "REPLACE",
  "REQUIRE_ENFORCED_EXPIRY",
  "DELETE_CLAIMED",
  // The agent
  "AGENT_TENANT",
  "AGENT_HOSTNAME",
  "AGENT_MAC",
  "AGENT_DATA_DIR",
  "AGENT_LOGINS",
  "AGENT_USER",
  "AGENT_SHELL",
  "AGENT_SFTP_SERVER",
  "AGENT_ALLOW_FORWARDING",
  "AGENT_ALLOW_HTTP",
  "AGENT_PASSWORD_HASH",
];

const PREFIX = "GATEHOUSE_";

const own: readonly string[] = Object.values(settings).flatMap(({ variable, secret }) =>
  secret ? [variable, `${variable}_FILE`] : [variable],
);

/** The names of all variables that a program of the project reads. */
export const knownVariables: ReadonlySet<string> = new Set([...own, ...OTHERS.map((name) => PREFIX + name)]);

/**
 * Returns the variables that have the prefix of settings, but that no program of the project reads.
 * @param names names of all variables of the environment
 */
export function unknownVariables(names: readonly string[]): readonly UnknownVariable[] {
  return names
    .filter((name) => name.startsWith(PREFIX) && !knownVariables.has(name))
    .sort()
    .map((variable) => ({ variable, similar: similarSettings(variable) }));
}

/** Returns the warning about an unknown variable. */
export const unknownText = ({ variable, similar }: UnknownVariable): string =>
  `${variable} is not a setting and has no effect.${similar === undefined ? "" : ` Did you mean ${similar}?`}`;

/** Finds similar settings as `commander` finds similar flags for an unknown flag. */
function similarSettings(variable: string): string | undefined {
  const command = new Command().exitOverride().configureOutput({ outputError: () => {} });
  for (const name of own) command.option(`--${name}`);
  try {
    command.parse([`--${variable}`], { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    const similar = /Did you mean (?:one of )?(.+)\?/.exec(error.message)?.[1];
    return similar?.replaceAll("--", "").replace(/, (?=[^,]*$)/, " or ");
  }
  return undefined;
}
