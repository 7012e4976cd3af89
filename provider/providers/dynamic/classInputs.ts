import { randomUUID } from "node:crypto";
import * as pulumi from "@pulumi/pulumi";
import { LOGICAL_ID, providerText, STATE_ID } from "../../engineMarks.ts";

type Args = Readonly<Record<string, unknown>>;

/** The inputs that every class adds to its own: which resource it is, and in which state. */
export function identifying(
  type: string,
  name: string,
  options: pulumi.CustomResourceOptions | undefined,
): Args {
  refuseProvider(type, name, options);
  // Each output costs Pulumi's SDK a stack trace; without a parent none is needed.
  const urn = options?.parent
    ? withoutDependency(pulumi.createUrn(name, type, options.parent))
    : `urn:pulumi:${pulumi.getStack()}::${pulumi.getProject()}::${type}::${name}`;
  return { [LOGICAL_ID]: urn, ...stateIdentity() };
}

/**
 * Refuses the option `provider`, which would have no effect: one process serves all dynamic resources of a program,
 * with one address and one credential.
 * @throws Error saying how objects of two services are managed
 */
function refuseProvider(type: string, name: string, options: pulumi.CustomResourceOptions = {}): void {
  const named = options.provider ?? options.parent?.getProvider(type);
  if (named === undefined) return;
  const from = options.provider ? "its option provider" : "the providers of its parent";
  throw new Error(
    `${type.slice(type.lastIndexOf(":") + 1)} "${name}": ${from} names a provider, which would have no effect: all of a stack's objects are on the service that GATEHOUSE_URL or gatehouse:url names. For two services, or two credentials, use a stack for each; for another namespace of the same service, the input tenant`,
  );
}

/** A resource of this program that gives tags to a device. */
interface Giver {
  readonly resource: pulumi.Resource;
  readonly tenant: unknown;
  readonly tags: readonly string[];
  readonly parent: pulumi.Resource | undefined;
}

const giversOfRun = perRun("givers", (): Giver[] => []);

/**
 * Remembers a resource that gives tags to a device, for {@link afterTags}. Only those with plain values as inputs
 * count.
 * @param input the one that holds the tags
 */
export function givesTags(
  resource: pulumi.Resource,
  args: Args,
  input: string,
  options: pulumi.CustomResourceOptions | undefined,
): void {
  const { tenant, ...rest } = args;
  // A resource that waits for others might wait for the one that would come to wait for it.
  const waits = options?.dependsOn !== undefined || Object.values(rest).some((value) => !isLiteral(value));
  if (waits) return;
  const given = [args[input]].flat().filter((tag) => typeof tag === "string");
  giversOfRun()?.push({ resource, tenant, tags: given, parent: options?.parent });
}

/**
 * The options of a resource with tags in its filter. For each tag that is a plain value, the resource depends on one
 * other resource that gives the tag to a device, wherever in the program that is. One is enough for the service to know
 * the tag; a dependency on each of a thousand devices would be a thousand lines of state.
 * @param input the one that holds the filter
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

/** Resolves when the part of the program has run that runs without waiting for anything. */
const restOfProgram = () => new Promise<void>((resolve) => setImmediate(resolve));

const isText = (value: unknown): value is string => typeof value === "string";

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
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
function stateIdentity(): Readonly<Record<string, unknown>> {
  const id = identityOfRun();
  return id ? { [STATE_ID]: id } : {};
}

/**
 * The same value without the dependency on its resource. With that on the resource of the state's id, every resource
 * would have a line more in the state, and every run that is limited to some resources would have to name it. With
 * that on a component, each of its children would wait for all others.
 */
function withoutDependency(output: pulumi.Output<string>): pulumi.Output<unknown> {
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
