import { randomUUID } from "node:crypto";
import * as pulumi from "@pulumi/pulumi";
import { providerText, STATE_ID } from "./closure.ts";

const NAME = "StateIdentity";

/**
 * Tells the states of one program apart: a resource without an object on the service, whose random id is in the state
 * before any other resource of this package is made.
 */
class StateIdentity extends pulumi.CustomResource {
  constructor() {
    super(`pulumi-nodejs:dynamic/gatehouse:${NAME}`, "gatehouse", { __provider: providerText(NAME) });
  }
}

const identityOfRun = perRun("stateIdentity", () => withoutDependency(new StateIdentity().id));

/** The input by which a resource says which state it is in; no part of any diff. */
export function stateIdentity(): Readonly<Record<string, unknown>> {
  const id = identityOfRun();
  return id ? { [STATE_ID]: id } : {};
}

/**
 * The same value without the dependency on its resource. With that on the resource of the state's id, every resource
 * would have a line more in the state, and every run that is limited to some resources would have to name it. With
 * that on a component, each of its children would wait for all others.
 */
export function withoutDependency(output: pulumi.Output<string>): pulumi.Output<unknown> {
  const { promise, isKnown } = output as unknown as {
    promise(withUnknowns: boolean): Promise<string>;
    isKnown: Promise<boolean>;
  };
  const value = Promise.all([promise.call(output, true), isKnown]);
  return pulumi.output(value.then(([text, known]) => (known ? text : pulumi.unknown)));
}

type Values = Record<string, unknown>;

/** The provider of the resource: it makes an id, and never changes it. */
export const stateIdentityProvider: pulumi.dynamic.ResourceProvider = {
  check: async (_olds: Values, inputs: Values) => ({ inputs, failures: [] }),
  diff: async () => ({ changes: false }),
  create: async (inputs: Values) => ({ id: randomUUID(), outs: inputs }),
  read: async (id: string, props: Values = {}) => ({ id, props }),
  delete: async () => {},
};

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
