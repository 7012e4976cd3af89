import { randomUUID } from "node:crypto";
import * as pulumi from "@pulumi/pulumi";
import { providerText, STATE_ID } from "./closure.ts";

const NAME = "StateIdentity";

/**
 * What tells one state from another of the same program: a resource without an object on the service, whose random id
 * lies in the state before anything else of ours is made.
 */
class StateIdentity extends pulumi.CustomResource {
  constructor() {
    super(`pulumi-nodejs:dynamic/gatehouse:${NAME}`, "gatehouse", { __provider: providerText(NAME) });
  }
}

/** One for each run of a program, whatever number of copies of this package it has loaded. */
const known: WeakMap<object, pulumi.Output<string>> = shared(
  Symbol.for("gatehouse.stateIdentities"),
  () => new WeakMap(),
);

function shared<T>(key: symbol, make: () => T): T {
  const holder = globalThis as unknown as Record<symbol, T | undefined>;
  holder[key] ??= make();
  return holder[key];
}

/** Where unit tests of a program make resources outside of any run. */
const NO_RUN = {};

/** The input by which a resource says which state it is in; no part of any diff. */
export function stateIdentity(): Readonly<Record<string, unknown>> {
  const run = pulumi.runtime.getStackResource() ?? NO_RUN;
  let id = known.get(run);
  if (!id) {
    id = withoutDependency(new StateIdentity().id);
    known.set(run, id);
  }
  return { [STATE_ID]: id };
}

/**
 * The same value, still known only where it is, of which nothing depends on the resource: a line in the state for each
 * resource, and a target that every run would have to name.
 */
function withoutDependency(id: pulumi.Output<pulumi.ID>): pulumi.Output<string> {
  const { promise } = id as unknown as { promise(withUnknowns: boolean): Promise<string> };
  return pulumi.output(promise.call(id, true));
}

type Values = Record<string, unknown>;

/** The provider of that resource: it makes an id, and never changes. */
export const stateIdentityProvider: pulumi.dynamic.ResourceProvider = {
  check: async (_olds: Values, inputs: Values) => ({ inputs, failures: [] }),
  diff: async () => ({ changes: false }),
  create: async (inputs: Values) => ({ id: randomUUID(), outs: inputs }),
  read: async (id: string, props: Values = {}) => ({ id, props }),
  delete: async () => {},
};
