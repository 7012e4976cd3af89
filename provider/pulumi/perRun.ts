import * as pulumi from "@pulumi/pulumi";

/**
 * Something that each run of a program has one of, whatever number of copies of this package it has loaded: a process may
 * run several programs, as the Automation API does. Undefined outside of a run, as in unit tests with mocks.
 * @param name the same in all copies, and for nothing else
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
