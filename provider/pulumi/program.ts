import * as pulumi from "@pulumi/pulumi";
import { LOGICAL_ID } from "./closure.ts";
import { perRun } from "./perRun.ts";
import { stateIdentity } from "./stateIdentity.ts";

type Args = Readonly<Record<string, unknown>>;

/**
 * What every class adds to its arguments: who it is, in which state, by which the service and the provider know it
 * again.
 */
export function identifying(
  type: string,
  name: string,
  options: pulumi.CustomResourceOptions | undefined,
): Args {
  refuseProvider(type, name, options);
  // Each output costs Pulumi's SDK a stack trace; without a parent none is needed.
  const urn = options?.parent
    ? pulumi.createUrn(name, type, options.parent)
    : `urn:pulumi:${pulumi.getStack()}::${pulumi.getProject()}::${type}::${name}`;
  return { [LOGICAL_ID]: urn, ...stateIdentity() };
}

/**
 * An engine would take the option and leave it: one process serves all of a program's dynamic resources, with one
 * address and one credential.
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

/** A resource of this program that gives a tag to a device. */
interface Giver {
  readonly resource: pulumi.Resource;
  readonly tenant: unknown;
  readonly tags: readonly string[];
  readonly parent: pulumi.Resource | undefined;
}

const giversOfRun = perRun("givers", (): Giver[] => []);

/** Remembers what gives tags by literals alone, for {@link afterTags}. */
export function givesTags(
  resource: pulumi.Resource,
  args: Args,
  input: string,
  options: pulumi.CustomResourceOptions | undefined,
): void {
  const { tenant, ...rest } = args;
  // Whatever waits for another resource might wait for the very one that would wait for it.
  const waits = options?.dependsOn !== undefined || Object.values(rest).some((value) => !isLiteral(value));
  if (waits) return;
  const given = [args[input]].flat().filter((tag) => typeof tag === "string");
  giversOfRun()?.push({ resource, tenant, tags: given, parent: options?.parent });
}

/**
 * The options of a resource whose filter names tags by literals: it comes after one resource for each tag that
 * gives it to a device, wherever in the program that stands. Only one, because one is enough for the service to
 * know the tag, and a dependency on each of a thousand devices would be a thousand lines of state.
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

/** Resolves when the part of the program that runs in one go has run. */
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
