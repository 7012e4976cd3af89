import { PROVIDER_KEY } from "../../../valueMarks.ts";
import type { Known } from "../../fieldDiff.ts";
import type { ResourceState } from "../../state/resourceState.ts";
import { changedKeys, equal, markSecrets, type Props, plainProps } from "../../value.ts";
import type { KnownObject, ProviderDiff, ProviderProcess, Target } from "../program/providerProcess.ts";

/** The reason for a replacement where replaceOnChanges is `*` and the object was not in order. */
const INIT_ERROR_KEY = "#initerror";

/** The inputs as the provider completes them. @throws Error naming each input that it refuses */
export async function checkInputs(
  provider: ProviderProcess,
  target: Target,
  olds: Props,
  news: Props,
): Promise<Props> {
  return markSecrets(await provider.check(target, olds, news), news);
}

/** The provider's diff; where the provider does not say whether something changes, the inputs are compared. */
export async function diffResource(
  provider: ProviderProcess,
  target: Target,
  old: KnownObject,
  inputs: Props,
): Promise<ProviderDiff> {
  const diff = await provider.diff(target, old, inputs);
  if (diff.changes !== "unknown") return diff;
  const same = equal(plainProps(old.inputs ?? {}), plainProps(inputs));
  return { ...diff, changes: same ? "none" : "some" };
}

/** Puts the old value back for every ignored property; `*` ignores all. */
export function ignoreChanges(inputs: Props, oldInputs: Props, ignored: readonly string[]): Props {
  if (ignored.length === 0) return inputs;
  const result: Props = { ...inputs };
  const all = ignored.includes("*");
  const keys = all ? new Set([...Object.keys(inputs), ...Object.keys(oldInputs)]) : new Set(ignored);
  keys.delete(PROVIDER_KEY);
  for (const key of keys) {
    const old = oldInputs[key];
    if (old === undefined) delete result[key];
    else result[key] = old;
  }
  return result;
}

/** The properties that force a replacement: the provider names them, or the option replaceOnChanges does. */
export function replaceKeys(
  diff: ProviderDiff,
  paths: readonly string[],
  old: Known & Pick<ResourceState, "initErrors">,
  inputs: Props,
): string[] {
  const keys = new Set(diff.changes === "some" ? diff.replaces : []);
  if (diff.changes === "some" && paths.length > 0) {
    for (const key of changedKeys(plainProps(old.inputs ?? {}), plainProps(inputs))) {
      if (key !== PROVIDER_KEY && (paths.includes("*") || paths.includes(key))) keys.add(key);
    }
  }
  if (paths.includes("*") && (old.initErrors?.length ?? 0) > 0) keys.add(INIT_ERROR_KEY);
  return [...keys];
}
