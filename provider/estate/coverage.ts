import { type Exception, exceptionFor } from "./exceptions.ts";
import { type Inventory, idWithin, type LiveObject, WATCHED_KINDS } from "./liveObjects.ts";
import type { ManagedObjects } from "./managedObjects.ts";

/** An object that no stack manages. */
export interface UnmanagedObject {
  /** Name of the resource that would declare it. */
  readonly kind: string;
  /** Fingerprint of a key, id of a rule, user id of a member, name of an API key, `uid/tag` of a device's tag. */
  readonly id: string;
  /** By what people know it. */
  readonly name: string;
  /** The exception that says so; left out where there is none, or none that still holds. */
  readonly exception?: { readonly until: string; readonly reason: string };
}

/** How much of one kind is managed. */
export interface KindCoverage {
  readonly kind: string;
  /** How many objects stacks manage. */
  readonly managed: number;
  /** How many objects there are. */
  readonly total: number;
  /** Rounded down; 100 where there are none. */
  readonly percent: number;
}

/** How much of a namespace stacks manage. */
export interface NamespaceCoverage extends Omit<KindCoverage, "kind"> {
  /** Raised by a change of this format that breaks programs which read it (docs/review-json.md). */
  readonly version: 1;
  /** Address of the service. */
  readonly service: string;
  /** Id of the namespace. */
  readonly tenant: string;
  readonly kinds: readonly KindCoverage[];
  readonly unmanaged: readonly UnmanagedObject[];
  /** What could not be read, as sentences. */
  readonly unknown: readonly string[];
}

/** The objects that no stack manages, those with an exception that holds too. */
export function unmanagedOf(
  objects: readonly LiveObject[],
  managed: ManagedObjects,
  exceptions: readonly Exception[],
  now: Date,
): { readonly object: LiveObject; readonly exception: Exception | undefined }[] {
  return objects
    .filter((object) => managed.ownerOf(object) === undefined)
    .map((object) => ({ object, exception: exceptionFor(exceptions, object, now) }));
}

/** An unmanaged object, as reports show it. */
export const shownObject = (object: LiveObject, exception: Exception | undefined): UnmanagedObject => ({
  kind: object.definition.name,
  id: idWithin(object),
  name: object.name,
  ...(exception && { exception: { until: exception.until, reason: exception.reason } }),
});

/** How much of a namespace stacks manage, kind by kind. */
export function coverageOf(
  { objects, unknown }: Inventory,
  where: Pick<NamespaceCoverage, "service" | "tenant">,
  managed: ManagedObjects,
  exceptions: readonly Exception[],
): NamespaceCoverage {
  const unmanaged = unmanagedOf(objects, managed, exceptions, new Date());
  const kinds = WATCHED_KINDS.map((kind) => {
    const isOfKind = ({ definition }: LiveObject) => definition.name === kind;
    const total = objects.filter(isOfKind).length;
    return { kind, ...share(total - unmanaged.filter(({ object }) => isOfKind(object)).length, total) };
  });
  return {
    version: 1,
    ...where,
    ...share(objects.length - unmanaged.length, objects.length),
    kinds,
    unmanaged: unmanaged.map(({ object, exception }) => shownObject(object, exception)),
    unknown,
  };
}

/** How much of a whole is managed. */
export const share = (managed: number, total: number): Omit<KindCoverage, "kind"> => ({
  managed,
  total,
  percent: total === 0 ? 100 : Math.floor((100 * managed) / total),
});
