import type { ResourceState } from "../../state/resourceState.ts";
import { changedKeys, equal, markSecrets, PROVIDER_KEY, type Props, plainProps } from "../../value.ts";
import type { DynamicProvider, ProviderDiff, Target } from "../program/providerProcess.ts";

/** Named as what forces a replacement where replaceOnChanges is `*` and the object was not in order. */
const INIT_ERROR_KEY = "#initerror";

/** An input the provider refuses. */
export class CheckError extends Error {}

/** The provider's check of a resource's inputs. Throws CheckError. */
export async function checkInputs(
  provider: DynamicProvider,
  target: Target,
  olds: Props,
  news: Props,
): Promise<Props> {
  const { inputs, failures } = await provider.check(target, olds, news);
  if (failures.length > 0) {
    throw new CheckError(
      failures.map((f) => (f.property ? `${f.property}: ${f.reason}` : f.reason)).join("; "),
    );
  }
  return markSecrets(inputs, news);
}

/** The provider's diff; where it does not say, the inputs are compared. */
export async function diffResource(
  provider: DynamicProvider,
  target: Target,
  old: ResourceState,
  inputs: Props,
): Promise<ProviderDiff> {
  const oldProps = { inputs: old.inputs ?? {}, outputs: old.outputs ?? {} };
  const diff = await provider.diff(target, old.id ?? "", oldProps, inputs);
  if (diff.changes !== "unknown") return diff;
  const same = equal(plainProps(oldProps.inputs), plainProps(inputs));
  return { ...diff, changes: same ? "none" : "some" };
}

/** Puts the old value back for every ignored property. `*` ignores all. */
export function ignoreChanges(inputs: Props, oldInputs: Props, ignored: string[]): Props {
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

/** The properties that force a replacement: those the provider names, and those the option replaceOnChanges does. */
export function replaceKeys(
  diff: ProviderDiff,
  paths: string[],
  old: ResourceState,
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
