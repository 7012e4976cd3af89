import * as pulumi from "@pulumi/pulumi";
import { LOGICAL_ID } from "./closure.ts";
import { perRun, stateIdentity, withoutDependency } from "./stateIdentity.ts";

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
