import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { tenantId } from "@gatehouse-access/sdk/contract";
import { DAY } from "@gatehouse-access/sdk/times";
import { z } from "zod";
import { EngineError, fileError, ifThere, type StateResource } from "../engine/index.ts";
import { claimsOfId } from "../lifecycle/claims.ts";
import type { ResourceDefinition } from "../model/definition.ts";
import { idWithin } from "../model/values.ts";
import { kindOf, kindsWith } from "../resources/index.ts";
import { isSameStack } from "../service/auditTrail.ts";
import { isSameService } from "../service/connection.ts";
import { type ExpiredObject, expiredObject, hasEndedOnService } from "./expired.ts";
import { definitionOf, type Inventory, type LiveObject } from "./liveObjects.ts";

/** A Gatehouse resource in a state. */
export interface OwnResource extends StateResource {
  readonly definition: ResourceDefinition;
}

/**
 * Returns the Gatehouse resources of a state that belong to one service. The provider instances of one program can use
 * different services.
 * @param service address of the service
 */
export function ownResources(resources: readonly StateResource[], service: string): OwnResource[] {
  const urls = new Map(resources.map(({ urn, id, inputs }) => [`${urn}::${id}`, inputs?.url]));
  return resources.flatMap((resource) => {
    const definition = definitionOf(resource);
    const url = urls.get(resource.provider ?? "");
    const isHere = typeof url !== "string" || isSameService(url, service);
    return definition && isHere ? [{ ...resource, definition }] : [];
  });
}

/** Returns the number of resources in each namespace of a stack, by the id of the namespace. */
export function namespacesUsedBy(own: readonly OwnResource[]): ReadonlyMap<string, number> {
  const used = new Map<string, number>();
  for (const { id = "", outputs = {} } of own) {
    // If the namespace is a secret value, the object's id still contains the id of the namespace.
    const tenant = [outputs.tenant, id.split("/", 1)[0]].find((text) => tenantId.safeParse(text).success);
    if (typeof tenant === "string") used.set(tenant, (used.get(tenant) ?? 0) + 1);
  }
  return used;
}

/**
 * The fields of a resource that identify the object that the resource manages. The id and the outputs come from the
 * state.
 */
export type ManagingResource = Pick<OwnResource, "definition" | "urn" | "id" | "outputs">;

/** The set of objects that the resources in one or more states manage. */
export class ManagedObjects {
  readonly #owners = new Map<string, string>();

  constructor(resources: Iterable<ManagingResource>) {
    for (const { definition, id, urn, outputs = {} } of resources) {
      if (id === undefined) continue;
      const keys = definition.rotation?.objectKeys(outputs) ?? ownKeys(definition, id);
      for (const key of [...keys, ...(definition.rotation?.keeps(outputs) ?? [])]) this.#owners.set(key, urn);
    }
  }

  /**
   * Returns the URN of the resource that manages the object or its parent object. Returns undefined if no resource
   * manages either of them.
   */
  ownerOf({ definition, id, state }: LiveObject): string | undefined {
    const keys =
      definition.rotation?.objectKeys(state) ?? claimsOfId(definition, id).map((claim) => claim.key);
    const owned = keys.find((key) => this.#owners.has(key));
    return owned === undefined ? undefined : this.#owners.get(owned);
  }
}

/**
 * Returns the keys of the objects that a resource manages alone. Omits keys that several resources can share, such as
 * the keys of a device's tags.
 */
const ownKeys = (definition: ResourceDefinition, id: string): string[] =>
  claimsOfId(definition, id)
    .filter((claim) => !claim.shared)
    .map((claim) => claim.key);

/** An unmanaged object. */
export interface UnmanagedObject {
  /** Name of the resource type, such as `PublicKey`. */
  readonly kind: string;
  /**
   * Id of the object: fingerprint of a key, id of a rule, user id of a member, name of an API key, or `uid/tag` of a
   * device's tag.
   */
  readonly id: string;
  /** Display name, such as the e-mail address of a member. */
  readonly name: string;
  /** The exception for the object in access.ignore. Omitted if there is no exception, or if the exception is over. */
  readonly exception?: { readonly until: string; readonly reason: string };
  /**
   * True if this stack declared the object earlier, but its state does not contain the object. Possible causes: the
   * response to the create request was lost, the state was lost, or the object moved to a different stack.
   */
  readonly declaredEarlier?: true;
}

/** A project and its stack. The program of the project declares objects. */
export interface Declarer {
  readonly project: string;
  readonly stack: string;
}

/**
 * Returns true if the stack was the last to declare the object, according to the service. Returns false for an object
 * that several resources share, since its declaration does not identify a single resource.
 */
export const isDeclaredBy = (
  { definition, declaredBy }: Pick<LiveObject, "definition" | "declaredBy">,
  declarer: Declarer | undefined,
): boolean =>
  declarer !== undefined &&
  declaredBy !== undefined &&
  !definition.object?.isPart &&
  isSameStack(declaredBy, declarer);

/** Coverage of one kind of objects. */
export interface KindCoverage {
  readonly kind: string;
  /** Number of objects that stacks manage. */
  readonly managed: number;
  /** Number of all objects, managed and unmanaged. */
  readonly total: number;
  /**
   * Percentage of managed objects, rounded down; 100 if there are no objects. Null if a list of objects could not be
   * read.
   */
  readonly percent: number | null;
}

/** Coverage of a namespace: the objects that stacks manage, and the unmanaged objects. */
export interface NamespaceCoverage extends Omit<KindCoverage, "kind"> {
  /** Version of this format. A breaking change increases the version (docs/reference/json-output.md). */
  readonly version: 1;
  /** Address of the service. */
  readonly service: string;
  /** Id of the namespace. */
  readonly tenant: string;
  readonly kinds: readonly KindCoverage[];
  readonly unmanaged: readonly UnmanagedObject[];
  /** Expired objects that no stack manages. They are excluded from the numbers of managed and unmanaged objects. */
  readonly expired: readonly ExpiredObject[];
  /** Sentences about lists that could not be read. */
  readonly unknown: readonly string[];
}

/** An unmanaged object, and the exception that applies to it, if any. */
export interface Unmanaged {
  readonly object: LiveObject;
  readonly exception: Exception | undefined;
}

/**
 * Returns the objects that no resource manages, including objects with an exception. Omits objects that have expired on
 * the service, because they give no access.
 * @param managed the managed objects of states, of a plan, or of both
 */
export function unmanagedOf(
  objects: readonly LiveObject[],
  managed: Pick<ManagedObjects, "ownerOf">,
  exceptions: readonly Exception[],
): Unmanaged[] {
  const now = new Date();
  return objects
    .filter((object) => !hasEndedOnService(object) && managed.ownerOf(object) === undefined)
    .map((object) => ({ object, exception: exceptionFor(exceptions, object, now) }));
}

/**
 * Returns the objects that have expired on the service and that no resource manages. The result has the format of
 * reports.
 */
export const endedObjects = (
  objects: readonly LiveObject[],
  managed: Pick<ManagedObjects, "ownerOf">,
): ExpiredObject[] =>
  objects
    .filter((object) => hasEndedOnService(object) && managed.ownerOf(object) === undefined)
    .map((object) =>
      expiredObject(object, { expiresAt: String(object.state.expiresAt), status: "enforced" }),
    );

/**
 * Returns an unmanaged object in the format of reports.
 * @param declarer the stack for which the report is generated; undefined if no stack is known
 */
export const shownObject = ({ object, exception }: Unmanaged, declarer?: Declarer): UnmanagedObject => ({
  kind: object.definition.name,
  id: idWithin(object),
  name: object.name,
  ...(exception && { exception: { until: exception.until, reason: exception.reason } }),
  ...(isDeclaredBy(object, declarer) && { declaredEarlier: true }),
});

/** Computes the coverage of a namespace: the total, and the coverage of each kind of object. */
export function coverageOf(
  { objects: all, unknown, unread }: Inventory,
  where: Pick<NamespaceCoverage, "service" | "tenant">,
  managed: ManagedObjects,
  exceptions: readonly Exception[],
): NamespaceCoverage {
  const objects = all.filter((object) => !hasEndedOnService(object) || managed.ownerOf(object));
  const unmanaged = unmanagedOf(objects, managed, exceptions);
  const kinds = kindsWith("watched").map(({ definition: { name: kind } }) => {
    const isOfKind = ({ definition }: LiveObject) => definition.name === kind;
    const left = unmanaged.filter(({ object }) => isOfKind(object));
    const known = share(objects.filter(isOfKind), left);
    return { kind, ...known, percent: unread.includes(kind) ? null : known.percent };
  });
  const total = share(objects, unmanaged);
  return {
    version: 1,
    ...where,
    ...total,
    percent: unread.length > 0 ? null : total.percent,
    kinds,
    unmanaged: unmanaged.map((one) => shownObject(one)),
    expired: endedObjects(all, managed),
    unknown,
  };
}

/** Returns the number and the percentage of managed objects. */
export function share(
  { length: total }: readonly LiveObject[],
  unmanaged: readonly Unmanaged[],
): Omit<KindCoverage, "kind"> & { readonly percent: number } {
  const managed = total - unmanaged.length;
  return { managed, total, percent: total === 0 ? 100 : Math.floor((100 * managed) / total) };
}

/** The file in the project directory that lists exceptions for unmanaged objects. */
export const EXCEPTIONS_FILE = "access.ignore";

/** An exception in access.ignore. It allows one object, or all objects of a kind, to be unmanaged until a date. */
export interface Exception {
  readonly kind: string;
  /**
   * Id of the object without the namespace, or the e-mail address of a member. `*` matches all objects of the kind.
   */
  readonly id: string;
  /** Last day of the exception, in UTC: `2027-01-31`. */
  readonly until: string;
  readonly reason: string;
  readonly line: number;
}

const LINE = /^(?<kind>\S+)\s+(?<id>"(?:[^"\\]|\\.)*"|\S+)\s+until\s+(?<until>\S+?):\s+(?<reason>\S.*)$/u;
const FORM = 'must have the form <kind> <id> until <YYYY-MM-DD>: <reason>; put an id with white space in "…"';

/**
 * Reads the exceptions of a project directory.
 * @throws EngineError (`project`) if the file cannot be read or a line is invalid. The error contains the line number.
 */
export async function readExceptions(folder: string): Promise<Exception[]> {
  const file = join(folder, EXCEPTIONS_FILE);
  const text = await ifThere(readFile(file, "utf8")).catch(fileError("project", "read", file));
  return (text ?? "").split("\n").flatMap((line, index) => {
    const content = line.trim();
    return content === "" || content.startsWith("#") ? [] : [parsed(content, index + 1)];
  });
}

function parsed(content: string, line: number): Exception {
  const refuse = (why: string) => new EngineError("project", why, { field: [`${EXCEPTIONS_FILE}:${line}`] });
  const { kind = "", id = "", until = "", reason = "" } = LINE.exec(content)?.groups ?? {};
  if (kind === "") throw refuse(FORM);
  const watched = kindsWith("watched").map(({ definition: { name } }) => name);
  if (!watched.includes(kind)) throw refuse(`The kind ${kind} is invalid. Use one of ${watched.join(", ")}`);
  if (!z.iso.date().safeParse(until).success)
    throw refuse(`The date ${until} is invalid. Use the form 2027-01-31`);
  return { kind, id: id.startsWith('"') ? unquoted(id, refuse) : id, until, reason, line };
}

function unquoted(text: string, refuse: (why: string) => Error): string {
  try {
    return JSON.parse(text) as string;
  } catch {
    throw refuse(`The id ${text} is not a valid JSON string. Escape the id as in JSON`);
  }
}

/** Returns true if the last day of an exception is over. */
export const isExceptionOver = ({ until }: Exception, now: Date): boolean =>
  now.getTime() >= Date.parse(until) + DAY;

/**
 * Returns the exception that applies to an object at a given time. Returns undefined if there is no exception, or if
 * the exception is over.
 */
export function exceptionFor(
  exceptions: readonly Exception[],
  object: LiveObject,
  now: Date,
): Exception | undefined {
  return exceptions.find(
    (exception) => matchesException(exception, object) && !isExceptionOver(exception, now),
  );
}

/** Returns true if an exception matches an object, even if the exception is over. */
export function matchesException({ kind, id }: Exception, object: LiveObject): boolean {
  if (kind !== object.definition.name) return false;
  if (id === "*" || id === idWithin(object)) return true;
  return isNamed(object) && id.toLowerCase() === object.name.toLowerCase();
}

/** Returns true if access.ignore identifies the object by its display name, such as the e-mail address of a member. */
const isNamed = (object: LiveObject): boolean => kindOf(object).watched?.isNamed === true;

/** Returns the line of access.ignore for an object. */
export function exceptionLine(object: LiveObject, until: string, reason: string): string {
  const id = isNamed(object) ? object.name : idWithin(object);
  const text = /^[^\s"]+$/u.test(id) ? id : JSON.stringify(id);
  return `${object.definition.name} ${text} until ${until}: ${reason}`;
}
