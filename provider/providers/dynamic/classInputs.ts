import { randomUUID } from "node:crypto";
import * as pulumi from "@pulumi/pulumi";
import { LOGICAL_ID, providerText, STATE_ID } from "../../engineMarks.ts";
import { perRun } from "../../helpers/perRun.ts";
import type { Values } from "../../values.ts";

type Args = Values;

/**
 * Returns the inputs that every Pulumi class of this package adds to the program's inputs. They are the URN of the
 * resource and the id of the Pulumi state.
 */
export function identifying(
  type: string,
  name: string,
  options: pulumi.CustomResourceOptions | undefined,
): Args {
  rejectProvider(type, name, options);
  // This function avoids Pulumi outputs, because Pulumi's SDK creates a stack trace for each output, which is slow. The
  // URN of a resource without a parent is a plain string, so it needs no output.
  const urn = options?.parent
    ? withoutDependency(pulumi.createUrn(name, type, options.parent))
    : `urn:pulumi:${pulumi.getStack()}::${pulumi.getProject()}::${type}::${name}`;
  return { [LOGICAL_ID]: urn, ...stateIdentity() };
}

/**
 * Rejects the option `provider`, which would have no effect. One process with one address and one credential serves all
 * dynamic resources of a program.
 * @throws Error with the ways to manage objects of two services
 */
function rejectProvider(type: string, name: string, options: pulumi.CustomResourceOptions = {}): void {
  const named = options.provider ?? options.parent?.getProvider(type);
  if (named === undefined) return;
  const origin = options.provider ? "its option provider" : "the providers of its parent";
  throw new Error(
    `${type.slice(type.lastIndexOf(":") + 1)} "${name}": ${origin} sets a provider, which has no effect: all objects of a stack belong to the service at GATEHOUSE_URL or gatehouse:url. Use a separate stack for each service or credential; for a different namespace of the same service, set the input tenant`,
  );
}

/** A giver: a resource of this program that adds tags to a device. */
interface Giver {
  readonly resource: pulumi.Resource;
  readonly tenant: unknown;
  readonly tags: readonly string[];
  readonly parent: pulumi.Resource | undefined;
}

const giversOfRun = perRun("givers", (): Giver[] => []);

/**
 * Records a resource that adds tags to a device, so that {@link afterTags} finds it. Records a resource only if all of
 * its inputs are plain values.
 * @param input the name of the input that contains the tags
 */
export function givesTags(
  resource: pulumi.Resource,
  args: Args,
  input: string,
  options: pulumi.CustomResourceOptions | undefined,
): void {
  const { tenant, ...rest } = args;
  // A resource with dependencies is not recorded, because it may depend on a resource that waits for the tags. The
  // dependencies would then form a cycle.
  const waits = options?.dependsOn !== undefined || Object.values(rest).some((value) => !isLiteral(value));
  if (waits) return;
  const given = [args[input]].flat().filter((tag) => typeof tag === "string");
  giversOfRun()?.push({ resource, tenant, tags: given, parent: options?.parent });
}

/**
 * Returns the resource options for a resource whose device filter contains tags. For each tag that is a plain string,
 * the resource depends on one resource of the program that adds the tag to a device. One dependency per tag is
 * sufficient, because the tag exists on the service as soon as one device has it. Dependencies on a thousand devices
 * would add a thousand lines to the state.
 * @param input the name of the input that contains the filter
 */
export function afterTags(
  args: Args,
  input: string,
  options: pulumi.CustomResourceOptions = {},
): pulumi.CustomResourceOptions {
  const filter = args[input];
  const needed = isRecord(filter) && Array.isArray(filter.tags) ? filter.tags.filter(isText) : [];
  if (needed.length === 0) return options;
  const givers = giversOfRun() ?? [];
  const found = restOfProgram().then(() =>
    needed.flatMap((tag) => {
      const giver = givers.find(
        ({ tags, tenant, parent }) =>
          tags.includes(tag) && tenant === args.tenant && (parent === undefined || parent === options.parent),
      );
      return giver ? [giver.resource] : [];
    }),
  );
  return pulumi.mergeOptions(options, { dependsOn: found });
}

/** Resolves after the synchronous part of the program has run. */
const restOfProgram = () => new Promise<void>((resolve) => setImmediate(resolve));

const isText = (value: unknown): value is string => typeof value === "string";

const isRecord = (value: unknown): value is Values =>
  typeof value === "object" &&
  value !== null &&
  !pulumi.Output.isInstance(value) &&
  !(value instanceof Promise);

function isLiteral(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return true;
  if (pulumi.Output.isInstance(value) || value instanceof Promise) return false;
  return Object.values(value).every(isLiteral);
}

const NAME = "StateIdentity";

/**
 * A Pulumi resource whose random id identifies the Pulumi state. The id is needed because one program can have several
 * states. The resource has no object on the service. The state contains the id before any other resource of this
 * package is created.
 */
class StateIdentity extends pulumi.CustomResource {
  constructor() {
    super(`pulumi-nodejs:dynamic/gatehouse:${NAME}`, "gatehouse", { __provider: providerText(NAME) });
  }
}

const identityOfRun = perRun("stateIdentity", () => withoutDependency(new StateIdentity().id));

/** Returns the input {@link STATE_ID} with the id of the Pulumi state. Diffs ignore this input. */
function stateIdentity(): Values {
  const id = identityOfRun();
  return id ? { [STATE_ID]: id } : {};
}

/**
 * Returns an output with the same value, but without the dependency on the resource that provides the value. With a
 * dependency on `StateIdentity`, each resource would have an additional line in the state, and every targeted run would
 * have to include `StateIdentity`. With a dependency on the parent component, each child would wait for all other
 * children.
 */
function withoutDependency(output: pulumi.Output<string>): pulumi.Output<unknown> {
  const { promise, isKnown } = output as unknown as {
    promise(withUnknowns: boolean): Promise<string>;
    isKnown: Promise<boolean>;
  };
  const value = Promise.all([promise.call(output, true), isKnown]);
  return pulumi.output(value.then(([text, known]) => (known ? text : pulumi.unknown)));
}

/** The dynamic provider of `StateIdentity`. It creates a random id and never changes the id. */
export const stateIdentityProvider: pulumi.dynamic.ResourceProvider = {
  check: async (_olds: Values, inputs: Values) => ({ inputs, failures: [] }),
  diff: async () => ({ changes: false }),
  create: async (inputs: Values) => ({ id: randomUUID(), outs: inputs }),
  read: async (id: string, props: Values = {}) => ({ id, props }),
  delete: async () => {},
};
