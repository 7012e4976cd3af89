import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { check } from "../../../provider/lifecycle/checkInputs.ts";
import type { ResourceDefinition } from "../../../provider/model/definition.ts";
import { canonicalInputs } from "../../../provider/model/values.ts";
import { programs } from "./programs.ts";

type Values = Record<string, unknown>;

/** Valid inputs of a resource type, and for each input a second valid value that is not equivalent. */
interface Sample {
  readonly base: Values;
  readonly changes: ReadonlyMap<string, unknown>;
}

/** Inputs that tests with generated values cannot change on an existing object. Other tests cover these inputs. */
const FIXED: Record<string, readonly string[]> = {
  // An accepted device cannot become rejected. A change of the other two inputs would need a second device with the
  // same name, which does not exist.
  Device: ["status", "device", "tenant"],
  // A change of these inputs also needs a change of other inputs.
  AccessPolicy: ["action", "requireReauth"],
  InstallKey: ["mode", "allowedMacs", "ephemeral"],
};

/**
 * Creates a sample of a resource with the generator of its programs.
 * @throws Error with the name of an input for which the generator has only one value
 */
export function sampleOf(definition: ResourceDefinition, seed = 7): Sample {
  const generated = fc.sample(programs(definition.name), { seed, numRuns: 500 });
  const names = Object.keys(definition.inputs).filter((name) => !definition.inputs[name]?.transient);
  // `base` sets all inputs except `tenant`.
  const base = generated.find((inputs) =>
    names.every((name) => (name === "tenant" ? !inputs.tenant : inputs[name] !== undefined)),
  );
  if (!base) throw new Error(`the generator of ${definition.name} never gives all inputs`);
  const { adopt: _adopt, ...plain } = base;
  const changes = new Map<string, unknown>();
  for (const name of names) {
    if (FIXED[definition.name]?.includes(name)) continue;
    changes.set(name, anotherValue(definition, plain, name, generated));
  }
  return { base: plain, changes };
}

function anotherValue(
  definition: ResourceDefinition,
  base: Values,
  name: string,
  generated: readonly Values[],
): unknown {
  const canonical = (inputs: Values) => canonicalInputs(definition.inputs, inputs)[name];
  const other = generated.find((inputs) => {
    const changed = { ...base, [name]: inputs[name] };
    const differs = inputs[name] !== undefined && !isDeepStrictEqual(canonical(changed), canonical(base));
    return differs && check(definition, changed).failures.length === 0;
  });
  if (!other) throw new Error(`the generator of ${definition.name} has one value for ${name} only`);
  return other[name];
}
