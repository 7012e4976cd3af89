import { ConfigurationError, credentialsFromEnvironment } from "@gatehouse-access/sdk";
import { UNKNOWN } from "../engineMarks.ts";
import type { InputChange } from "../lifecycle/diff.ts";
import { hasUnknown } from "../resources/values.ts";
import { type Connection, isSameService } from "../service/connection.ts";
import {
  CREDENTIALS,
  defaultTenant,
  newConnection,
  SETTINGS,
  type Setting,
  settings,
  type Waiting,
} from "../service/newConnection.ts";

type Values = Readonly<Record<string, unknown>>;

/** Inputs of every provider instance, which the engine gives and reads. */
const OF_ENGINE: readonly string[] = ["version", "pluginDownloadURL", "__internal"];

const all = Object.entries(SETTINGS) as readonly (readonly [string, Setting])[];

/** A provider instance of a program: the default one, or one that the program makes. */
export interface Instance {
  /** True for the one of resources whose program names none; stack configurations are for it. */
  readonly isDefault: boolean;
  /** Its inputs; unknown ones only in previews. */
  readonly inputs: Values;
}

/**
 * The settings of an instance as environment variables. For the default one the environment wins over the stack's
 * configuration, as for dynamic resources. One that a program makes is as its program says: the environment only fills
 * in what it leaves open, and what belongs to another service not even that, so that no credential goes where it does
 * not belong. What is not known yet is not open.
 */
export function settingsOf({ isDefault, inputs }: Instance, env: NodeJS.ProcessEnv): Record<string, string> {
  const textOf = (name: string) => {
    const value = inputs[name];
    return typeof value === "string" && !hasUnknown(value) ? value : undefined;
  };
  if (isDefault) return settings((key) => textOf(key.slice("gatehouse:".length)), env);
  const own = all.flatMap(([name, { variable }]) => {
    const text = textOf(name);
    return text ? [[variable, text] as const] : [];
  });
  const later = all.filter(([name]) => hasUnknown(inputs[name]));
  const given = new Set([...own.map(([variable]) => variable), ...later.map(([, { variable }]) => variable)]);
  const { GATEHOUSE_URL: url } = Object.fromEntries(own);
  const elsewhere = hasUnknown(inputs.url) || (url !== undefined && isElsewhere(url, env));
  const isOpen = (variable: string) => {
    const isCredential = CREDENTIALS.includes(variable);
    const isTenant = variable === "GATEHOUSE_TENANT";
    if ((elsewhere && (isCredential || isTenant)) || (isTenant && hasUnknown(inputs.tenant))) return false;
    return isCredential ? !CREDENTIALS.some((part) => given.has(part)) : !given.has(variable);
  };
  const rest = Object.entries(settings(() => undefined, env)).filter(([name]) =>
    isOpen(name.replace(/_FILE$/, "")),
  );
  return Object.fromEntries([...rest, ...own]);
}

/**
 * Opens the connection of an instance; the caller closes its client.
 * @throws ConfigurationError naming the setting that is missing or wrong, with what is allowed
 */
export function connectionOf(instance: Instance, waiting: Waiting, env: NodeJS.ProcessEnv): Connection {
  const effective = settingsOf(instance, env);
  const { url: stated } = instance.inputs;
  const { url: usual } = credentialsFromEnvironment(addressIn(effective));
  // A check fills in the address. Only a run without one has another: it is from the state, as destroy and refresh are.
  if (
    instance.isDefault &&
    typeof stated === "string" &&
    usual !== undefined &&
    !isSameService(stated, usual)
  ) {
    throw new ConfigurationError(
      `the objects of this state are on ${stated}, and GATEHOUSE_URL is ${usual}`,
      {
        field: ["url"],
        remedy: "set it to that address, or leave it out",
      },
    );
  }
  const hasCredential = CREDENTIALS.some((name) => effective[name] ?? effective[`${name}_FILE`]);
  if (!instance.isDefault && !hasCredential && typeof stated === "string" && isElsewhere(stated, env)) {
    throw new ConfigurationError(
      `the provider is for ${stated}, and the environment does not say that its credential is for that service (GATEHOUSE_URL), so it is not sent there`,
      { field: ["credential"], remedy: "give the provider apiKey, token, or username and password" },
    );
  }
  return newConnection(() => undefined, waiting, effective);
}

/**
 * The namespace of an instance's resources that name none, as far as settings tell; the mark of the unknown where the
 * program gives it later.
 * @throws ConfigurationError when it is no id of a namespace
 */
export function tenantOf(instance: Instance, env: NodeJS.ProcessEnv): string | undefined {
  const isLater = !instance.isDefault && hasUnknown(instance.inputs.tenant);
  return isLater ? UNKNOWN : defaultTenant(() => undefined, settingsOf(instance, env));
}

/** True unless the environment says that it is for this service: what it has may be for another one. */
function isElsewhere(url: string, env: NodeJS.ProcessEnv): boolean {
  const { url: usual } = credentialsFromEnvironment(addressIn(env));
  return usual === undefined || !isSameService(usual, url);
}

const addressIn = ({ GATEHOUSE_URL, GATEHOUSE_URL_FILE }: NodeJS.ProcessEnv) => ({
  GATEHOUSE_URL,
  GATEHOUSE_URL_FILE,
});

/**
 * Checks the inputs of an instance, without any request. The service and the namespace are filled in from the
 * environment, so that the state says where its objects are; a credential of the environment never gets into it. Where
 * nobody says it any more, the default instance stays where it was.
 * @param olds its inputs in the state
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
        new ConfigurationError("is not a setting", { field, remedy: `settings are ${names.join(", ")}` }),
      ];
    }
    return typeof value === "string" ? [] : [new ConfigurationError("must be a text", { field })];
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

/** Where the objects of the default instance were, unless it is on another service now. */
function formerPlace({ isDefault }: Instance, olds: Values, place: Values): Values {
  const { url, tenant } = olds;
  const moves = typeof place.url === "string" && typeof url === "string" && !isSameService(url, place.url);
  if (!isDefault || moves) return {};
  return { ...(url !== undefined && { url }), ...(tenant !== undefined && { tenant }) };
}

/** Where the objects of an instance are, as far as that is known. */
function placeOf(instance: Instance, env: NodeJS.ProcessEnv): Record<string, string> {
  const { inputs } = instance;
  const effective = settingsOf(instance, env);
  const isKnown = !hasUnknown(inputs);
  // With a part unknown, a credential would look incomplete.
  const { url } = isKnown
    ? credentialsFromEnvironment(effective)
    : credentialsFromEnvironment(addressIn(effective));
  if (url !== undefined && !/^https?:$/.test(URL.parse(url)?.protocol ?? "")) {
    throw new ConfigurationError("must be an address, for example https://access.example.org", {
      field: ["url"],
    });
  }
  const tenant = defaultTenant(() => undefined, effective);
  return {
    ...(url !== undefined && !hasUnknown(inputs.url) && { url }),
    ...(tenant !== undefined && !hasUnknown(inputs.tenant) && { tenant }),
  };
}

/**
 * What changes between the inputs of an instance in the state and those of the program. Another service has other
 * objects, so it replaces the instance and all that is in it. Another namespace replaces what is in the old one, which
 * each resource tells by its input `tenant`; what names its own namespace, and namespaces themselves, stay. A
 * credential is used from then on.
 */
export function diffInstance(before: Values, after: Values): InputChange[] {
  return all.flatMap(([name]): InputChange[] => {
    const old = before[name] ?? undefined;
    const now = after[name] ?? undefined;
    if (old === now) return [];
    // An address that is not known yet may be another one: a plan must not promise less than may happen.
    const replaces =
      name === "url" &&
      typeof old === "string" &&
      typeof now === "string" &&
      (hasUnknown(now) || !isSameService(old, now));
    return [{ field: name, before: old, after: now, replaces }];
  });
}

/** A text without the secrets in it, also as JSON writes them. @param secrets the longest first */
export function masked(text: string, secrets: readonly string[]): string {
  const written = secrets.flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1)]);
  return written.reduce((shown, secret) => shown.replaceAll(secret, "[secret]"), text);
}
