import { randomUUID } from "node:crypto";
import * as pulumi from "@pulumi/pulumi";
import { providerText, STATE_ID } from "./closure.ts";
import { perRun } from "./perRun.ts";

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

const identityOfRun = perRun("stateIdentity", () => withoutDependency(new StateIdentity().id));

/** The input by which a resource says which state it is in; no part of any diff. */
export function stateIdentity(): Readonly<Record<string, unknown>> {
  const id = identityOfRun();
  return id ? { [STATE_ID]: id } : {};
}

/**
 * The same value, known only where it is known, of which nothing depends on the resource: a line in the state for each
 * resource, and a target that every run would have to name.
 */
function withoutDependency(id: pulumi.Output<pulumi.ID>): pulumi.Output<unknown> {
  const { promise, isKnown } = id as unknown as {
    promise(withUnknowns: boolean): Promise<string>;
    isKnown: Promise<boolean>;
  };
  const value = Promise.all([promise.call(id, true), isKnown]);
  return pulumi.output(value.then(([text, known]) => (known ? text : pulumi.unknown)));
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
