import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { check } from "../../../provider/lifecycle/lifecycle.ts";
import type { ResourceDefinition } from "../../../provider/resources/definition.ts";
import { canonicalInputs } from "../../../provider/resources/values.ts";
import { programs } from "./programs.ts";

type Values = Record<string, unknown>;

/** Valid inputs of a resource, and for each input another valid value that means something else. */
export interface Sample {
  readonly base: Values;
  readonly changes: ReadonlyMap<string, unknown>;
}

/** Inputs that no value of the generator may change on a living object. */
const FIXED: Record<string, readonly string[]> = {
  // An accepted device cannot be rejected, and another one cannot have its name; tests of their own have both.
  Device: ["status", "device", "tenant"],
};

/**
 * A sample of a resource, made by the generator of its programs.
 * @throws Error naming an input for which the generator has only one value
 */
export function sampleOf(definition: ResourceDefinition, seed = 7): Sample {
  const generated = fc.sample(programs(definition.name), { seed, numRuns: 500 });
  const names = Object.keys(definition.inputs).filter((name) => !definition.inputs[name]?.transient);
  // One that says all that can be said, in the user's own namespace.
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
