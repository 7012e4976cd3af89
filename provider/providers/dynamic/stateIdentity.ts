import { randomUUID } from "node:crypto";
import * as pulumi from "@pulumi/pulumi";
import { providerText, STATE_ID } from "./closure.ts";
import { perRun } from "./perRun.ts";

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
