import { ConfigurationError, credentialsFromEnvironment } from "@gatehouse-access/sdk";
import { maskSecrets } from "@gatehouse-access/sdk/errors";
import { UNKNOWN } from "../engineMarks.ts";
import type { InputChange } from "../lifecycle/diff.ts";
import { hasUnknown } from "../model/values.ts";
import { engineText, ResourceError } from "../resourceError.ts";
import { type Connection, type FrontEnd, isSameService } from "../service/connection.ts";
import {
  CREDENTIALS,
  defaultTenant,
  newConnection,
  SETTINGS,
  type Setting,
  settingOf,
  settings,
  type Waiting,
  withNames,
} from "../service/newConnection.ts";
import { terraformName } from "../terraform/types.ts";
import type { Values } from "../values.ts";

/**
 * The inputs of a provider instance that Pulumi's engine itself sets and reads. They are not settings of this provider.
 */
const OF_ENGINE: readonly string[] = ["version", "pluginDownloadURL", "__internal"];

const all = Object.entries(SETTINGS) as readonly (readonly [string, Setting])[];

/** A provider instance of a program: the default instance or an explicit instance. */
export interface Instance {
  /**
   * True for the default instance, which resources without an explicit provider use. Only this instance uses the
   * stack's configuration.
   */
  readonly isDefault: boolean;
  /** The inputs. They can contain unknown values only in previews. */
  readonly inputs: Values;
}

/**
 * Returns the settings of an instance as environment variables. For the default instance, the environment takes
 * precedence over the stack's configuration, as for dynamic resources. For an explicit instance, the program's inputs
 * take precedence, and the environment provides only the settings that the program omits. An unknown input is not
 * treated as omitted. If the program sets the address of a different service, the credential and the namespace in the
 * environment are not used. The credential is therefore never sent to the wrong service.
 */
export function settingsOf({ isDefault, inputs }: Instance, env: NodeJS.ProcessEnv): Record<string, string> {
  const settingText = (name: string) => {
    const value = inputs[name];
    return typeof value === "string" && !hasUnknown(value) ? value : undefined;
  };
  if (isDefault) return settings((key) => settingText(key.slice("gatehouse:".length)), env);
  const ownSettings = all.flatMap(([name, { variable }]) => {
    const text = settingText(name);
    return text ? [[variable, text] as const] : [];
  });
  const unknownSettings = all.filter(([name]) => hasUnknown(inputs[name]));
  const given = new Set([
    ...ownSettings.map(([variable]) => variable),
    ...unknownSettings.map(([, { variable }]) => variable),
  ]);
  const { GATEHOUSE_URL: url } = Object.fromEntries(ownSettings);
  const isOtherService = hasUnknown(inputs.url) || (url !== undefined && isElsewhere(url, env));
  const isOmitted = (variable: string) => {
    const isCredential = CREDENTIALS.includes(variable);
    const isTenant = variable === "GATEHOUSE_TENANT";
    if ((isOtherService && (isCredential || isTenant)) || (isTenant && hasUnknown(inputs.tenant)))
      return false;
    // If `oidc` is the only credential setting in the program, the environment of the CI job contains the token, or the
    // path of the token file. These variables therefore stay in use.
    const isOfSource = variable.startsWith(`${SETTINGS.oidc.variable}_`);
    const replacing = CREDENTIALS.filter((name) => !(isOfSource && name === SETTINGS.oidc.variable));
    return isCredential ? !replacing.some((name) => given.has(name)) : !given.has(variable);
  };
  const rest = Object.entries(settings(() => undefined, env)).filter(([name]) =>
    isOmitted(name.replace(/_FILE$/, "")),
  );
  return Object.fromEntries([...rest, ...ownSettings]);
}

/**
 * Opens the connection of an instance. The caller must close the client of the connection.
 * @throws ConfigurationError with the missing or wrong setting and its allowed values
 */
export function connectionOf(
  instance: Instance,
  waiting: Waiting,
  env: NodeJS.ProcessEnv,
  frontEnd: FrontEnd = "pulumi",
): Connection {
  const effective = settingsOf(instance, env);
  const { url: stated } = instance.inputs;
  const { url: usual } = credentialsFromEnvironment(addressIn(effective));
  // The address in the state can differ from the address in the environment. When the engine checks a provider
  // instance, it copies the address from the environment to the inputs. Runs without this check, such as `destroy` or
  // `refresh`, take the inputs from the state. The two addresses can therefore differ only in such a run.
  if (
    instance.isDefault &&
    typeof stated === "string" &&
    usual !== undefined &&
    !isSameService(stated, usual)
  ) {
    throw new ConfigurationError(
      `The objects in this state are on the service ${stated}, but GATEHOUSE_URL is ${usual}`,
      {
        field: ["url"],
        remedy:
          "set GATEHOUSE_URL to the service address that is stored in the state, or unset GATEHOUSE_URL",
      },
    );
  }
  const hasCredential = CREDENTIALS.some((name) => effective[name] ?? effective[`${name}_FILE`]);
  if (!instance.isDefault && !hasCredential && typeof stated === "string" && isElsewhere(stated, env)) {
    throw new ConfigurationError(
      `The credential in the environment cannot be used for ${stated}: GATEHOUSE_URL is not set to this address`,
      {
        field: ["credential"],
        remedy: `set GATEHOUSE_URL to this address, or set one of the provider's credentials: ${frontEnd === "terraform" ? "api_key" : "apiKey"}, token, oidc, or username with password`,
      },
    );
  }
  return newConnection(
    () => undefined,
    waiting,
    effective,
    frontEnd,
    (variable) => nameIn(instance, env, frontEnd, variable),
  );
}

/** Returns the name that errors use for a setting: the name of the program's argument, or the environment variable. */
function nameIn(
  { isDefault, inputs }: Instance,
  env: NodeJS.ProcessEnv,
  frontEnd: FrontEnd,
  variable: string,
): string {
  const name = settingOf(variable);
  // The environment takes precedence over a stack's configuration. The arguments of an explicit instance take
  // precedence over the environment.
  if (name === undefined || !inputs[name] || (isDefault && env[variable])) return variable;
  if (frontEnd === "terraform") return terraformName(name);
  return isDefault ? `gatehouse:${name}` : name;
}

/**
 * Returns the default namespace of an instance. Returns undefined if no setting defines it, and {@link UNKNOWN} if the
 * program's value is not known yet.
 * @throws ConfigurationError if the setting is not the id of a namespace
 */
export function tenantOf(instance: Instance, env: NodeJS.ProcessEnv): string | undefined {
  const isUnknown = !instance.isDefault && hasUnknown(instance.inputs.tenant);
  return isUnknown ? UNKNOWN : defaultTenant(() => undefined, settingsOf(instance, env));
}

/**
 * Returns true if `GATEHOUSE_URL` in the environment is not set, or is the address of a different service. In both
 * cases, the other settings in the environment may belong to a different service.
 */
function isElsewhere(url: string, env: NodeJS.ProcessEnv): boolean {
  const { url: usual } = credentialsFromEnvironment(addressIn(env));
  return usual === undefined || !isSameService(usual, url);
}

const addressIn = ({ GATEHOUSE_URL, GATEHOUSE_URL_FILE }: NodeJS.ProcessEnv) => ({
  GATEHOUSE_URL,
  GATEHOUSE_URL_FILE,
});

/**
 * Checks the inputs of an instance without sending a request. Adds the service address and the namespace from the
 * environment to the inputs, so that the state contains the location of its objects. A credential from the environment
 * is never stored. If no setting defines the service address or the namespace, the default instance keeps the value in
 * the state.
 * @param olds the inputs in the state
 */
export function checkInstance(
  instance: Instance,
  olds: Values,
  env: NodeJS.ProcessEnv,
): { readonly inputs: Values; readonly failures: readonly ConfigurationError[] } {
  const { inputs } = instance;
  const names = all.map(([name]) => name);
  const failures = Object.entries(inputs).flatMap(([name, value]): ConfigurationError[] => {
    if (OF_ENGINE.includes(name) || value === null || hasUnknown(value)) return [];
    const field = [name];
    if (!names.includes(name)) {
      return [
        new ConfigurationError("is not a setting of the provider", {
          field,
          remedy: `valid settings: ${names.join(", ")}`,
        }),
      ];
    }
    return typeof value === "string" ? [] : [new ConfigurationError("must be a string", { field })];
  });
  if (failures.length > 0) return { inputs, failures };
  try {
    const place = placeOf(instance, env);
    return { inputs: { ...inputs, ...formerPlace(instance, olds, place), ...place }, failures: [] };
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    return { inputs, failures: [error] };
  }
}

/**
 * Returns the service address and the namespace in the state of the default instance. Returns no values for an explicit
 * instance, or if the settings now contain the address of a different service.
 */
function formerPlace({ isDefault }: Instance, olds: Values, place: Values): Values {
  const { url, tenant } = olds;
  const moves = typeof place.url === "string" && typeof url === "string" && !isSameService(url, place.url);
  if (!isDefault || moves) return {};
  return { ...(url !== undefined && { url }), ...(tenant !== undefined && { tenant }) };
}

/** Returns the service address and the namespace of a provider instance, if they are known. */
function placeOf(instance: Instance, env: NodeJS.ProcessEnv): Record<string, string> {
  const { inputs } = instance;
  const effective = settingsOf(instance, env);
  const isKnown = !hasUnknown(inputs);
  // If an input is unknown, only the address is read, because an incomplete credential would be rejected.
  const read = () => {
    const { url } = credentialsFromEnvironment(isKnown ? effective : addressIn(effective));
    return { url, tenant: defaultTenant(() => undefined, effective) };
  };
  const { url, tenant } = withNames((variable) => nameIn(instance, env, "pulumi", variable), read);
  return {
    ...(url !== undefined && !hasUnknown(inputs.url) && { url }),
    ...(tenant !== undefined && !hasUnknown(inputs.tenant) && { tenant }),
  };
}

/**
 * Returns the differences between the inputs of an instance in the state and in the program. A different service has
 * different objects, so a change to the service address replaces the instance and all its resources. A change to the
 * namespace does not replace the instance. It replaces the resources in the old namespace, because their input `tenant`
 * changes. It does not replace namespaces or resources that set `tenant`. A change to the credential replaces nothing.
 */
export function diffInstance(before: Values, after: Values): InputChange[] {
  return all.flatMap(([name]): InputChange[] => {
    const old = before[name] ?? undefined;
    const now = after[name] ?? undefined;
    if (old === now) return [];
    // An unknown address may belong to a different service, so it requires a replacement. A preview must show every
    // replacement that the run may make.
    const replaces =
      name === "url" &&
      typeof old === "string" &&
      typeof now === "string" &&
      (hasUnknown(now) || !isSameService(old, now));
    return [{ field: name, before: old, after: now, replaces }];
  });
}

/**
 * Returns the text of an error with masked secrets. Secrets are masked both in plain form and in JSON notation.
 * Sentences that this project wrote are not masked.
 * @param text the text to mask; default: the text that front ends print
 */
export function masked(error: unknown, secrets: readonly string[], text = engineText(error)): string {
  const written = secrets.flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1)]);
  return maskSecrets(text, written, error instanceof ResourceError ? error.ownTexts : []);
}
