import * as pulumi from "@pulumi/pulumi";

/**
 * Returns a function that returns the same value throughout one run of a program. One process may run several programs,
 * as the Automation API does. If a program loads several copies of this package, all copies share the value. Outside of
 * a run, for example in unit tests with mocks, the function returns undefined.
 * @param name identifies the value in all copies of this package
 */
export function perRun<T>(name: string, make: () => T): () => T | undefined {
  const key = Symbol.for(`gatehouse.${name}`);
  const holder = globalThis as unknown as Record<symbol, WeakMap<object, T> | undefined>;
  holder[key] ??= new WeakMap();
  const values = holder[key];
  return () => {
    const run = pulumi.runtime.getStackResource();
    if (!run) return undefined;
    const known = values.get(run) ?? make();
    values.set(run, known);
    return known;
  };
}
