import { type SuggestingCommand, similarNames } from "./commandLine.ts";

/** The prefix of all variables of this project. */
const PREFIX = "GATEHOUSE_";

const withoutPrefix = (variable: string): string => variable.slice(PREFIX.length);

/** The variables of the SDK, the providers and `gatehouse`. */
const ofClients: readonly string[] = [
  // Each of these variables also has a `_FILE` form.
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
  "SKIP_PREFLIGHT",
].map((name) => PREFIX + name);

/** The variables that only `gatehouse-agent` reads. The agent also reads GATEHOUSE_URL. */
const ofAgents: readonly string[] = [
  "TENANT",
  "HOSTNAME",
  "MAC",
  "DATA_DIR",
  "LOGINS",
  "USER",
  "SHELL",
  "SFTP_SERVER",
  "ALLOW_FORWARDING",
  "ALLOW_HTTP",
  "PASSWORD_HASH",
].map((name) => `${PREFIX}AGENT_${name}`);

/** The names of the variables that the SDK, the providers, `gatehouse` and `gatehouse-agent` read. */
export const clientVariables: readonly string[] = [...ofClients, ...ofAgents];

/** An environment variable that looks like a setting of this project, but that no program of the project reads. */
export interface UnknownVariable {
  readonly variable: string;
  /** Names of similar settings, as a string. Undefined if no setting is similar. */
  readonly similar: string | undefined;
}

/**
 * Returns the variables that have the prefix of this project, but that no program of the project reads.
 * @param names names of all variables of the environment
 * @param known names of the variables that the programs of the project read
 * @param suggested names that the result may suggest
 * @param newCommand creates an empty command of the library `commander`, which finds similar names
 */
export function unknownVariables(
  names: readonly string[],
  known: ReadonlySet<string>,
  suggested: readonly string[],
  newCommand: () => SuggestingCommand,
): readonly UnknownVariable[] {
  return names
    .filter((name) => name.startsWith(PREFIX) && !known.has(name))
    .sort()
    .map((variable) => {
      // The names are compared without the prefix, because the common prefix would make all names similar.
      const similar = similarNames(
        withoutPrefix(variable).toUpperCase(),
        suggested.map(withoutPrefix),
        newCommand(),
      );
      return { variable, similar: similar?.replaceAll(/\w*[A-Z]\w*/g, `${PREFIX}$&`) };
    });
}

/**
 * The settings of `gatehouse-server` whose names are similar to a variable of a client. A test compares the names of
 * all settings.
 */
const SIMILAR_SETTINGS = ["GATEHOUSE_AGENT_IMAGE", "GATEHOUSE_TLS_KEY_FILE"];

const known = new Set([...clientVariables, ...SIMILAR_SETTINGS]);

/**
 * Returns a warning for each variable that is probably a misspelled variable of a client. Clients do not warn about
 * other unknown variables, because these can be settings of `gatehouse-server`.
 */
export const misspelledVariables = (
  names: readonly string[],
  newCommand: () => SuggestingCommand,
): readonly string[] =>
  unknownVariables(names, known, clientVariables, newCommand)
    .filter(({ similar }) => similar !== undefined)
    .map(unknownText);

/** Returns the warning about an unknown variable. */
export const unknownText = ({ variable, similar }: UnknownVariable): string =>
  `${variable} is not a setting and has no effect.${similar === undefined ? "" : ` Did you mean ${similar}?`}`;
