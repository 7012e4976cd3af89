import * as pulumi from "@pulumi/pulumi";

/**
 * A value that each run of a program has one of. A process may run several programs, as the Automation API does, and a
 * program may have loaded several copies of this package, which share the value. It is undefined outside of a run, as
 * in unit tests with mocks.
 * @param name identifies the value in all copies of this package
 */
export function perRun<T>(name: string, make: () => T): () => T | undefined {
  const key = Symbol.for(`gatehouse.${name}`);
  const holder = globalThis as unknown as Record<symbol, WeakMap<object, T> | undefined>;
  holder[key] ??= new WeakMap();
  const made = holder[key];
  return () => {
    const run = pulumi.runtime.getStackResource();
    if (!run) return undefined;
    const known = made.get(run) ?? make();
    made.set(run, known);
    return known;
  };
}
