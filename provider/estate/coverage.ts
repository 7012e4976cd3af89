import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { EngineError, ifThere, type StateResource } from "../engine/index.ts";
import { claimsOfId } from "../lifecycle/claims.ts";
import type { ResourceDefinition } from "../resources/definition.ts";
import { idWithin } from "../resources/values.ts";
import { isSameService } from "../service/connection.ts";
import { definitionOf, type Inventory, type LiveObject, WATCHED_KINDS } from "./liveObjects.ts";

/** A resource of this package in a state. */
export interface OwnResource extends StateResource {
  readonly definition: ResourceDefinition;
}

/**
 * The resources of this package in a state that are on a service. The provider instances of a program may be for several.
 * @param service its address
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

/** The objects that resources in states manage. */
export class ManagedObjects {
  readonly #owners = new Map<string, string>();

  constructor(resources: Iterable<OwnResource>) {
    for (const { definition, id, urn, outputs = {} } of resources) {
      if (id === undefined) continue;
      const keys = definition.objectKeys?.(outputs) ?? ownKeys(definition, id);
      for (const key of [...keys, ...(definition.keeps?.(outputs) ?? [])]) this.#owners.set(key, urn);
    }
  }

  /** The URN of the resource that manages the object, or an object that it is part of; undefined for none. */
  ownerOf({ definition, id, state }: LiveObject): string | undefined {
    const keys =
      (state && definition.objectKeys?.(state)) ?? claimsOfId(definition, id).map((claim) => claim.key);
    const owned = keys.find((key) => this.#owners.has(key));
    return owned === undefined ? undefined : this.#owners.get(owned);
  }
}

/** The keys that only this resource may have: not those of a device's tags, for example. */
const ownKeys = (definition: ResourceDefinition, id: string): string[] =>
  claimsOfId(definition, id)
    .filter((claim) => !claim.shared)
    .map((claim) => claim.key);

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

export interface Unmanaged {
  readonly object: LiveObject;
  readonly exception: Exception | undefined;
}

/**
 * The objects without an owner. Objects with an exception are among them.
 * @param managed the owners by a state, a plan, or both
 */
export function unmanagedOf(
  objects: readonly LiveObject[],
  managed: Pick<ManagedObjects, "ownerOf">,
  exceptions: readonly Exception[],
): Unmanaged[] {
  const now = new Date();
  return objects
    .filter((object) => managed.ownerOf(object) === undefined)
    .map((object) => ({ object, exception: exceptionFor(exceptions, object, now) }));
}

export const shownObject = ({ object, exception }: Unmanaged): UnmanagedObject => ({
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
  const unmanaged = unmanagedOf(objects, managed, exceptions);
  const kinds = WATCHED_KINDS.map((kind) => {
    const isOfKind = ({ definition }: LiveObject) => definition.name === kind;
    const left = unmanaged.filter(({ object }) => isOfKind(object));
    return { kind, ...share(objects.filter(isOfKind), left) };
  });
  return {
    version: 1,
    ...where,
    ...share(objects, unmanaged),
    kinds,
    unmanaged: unmanaged.map(shownObject),
    unknown,
  };
}

/** How much of some objects is managed. */
export function share(
  { length: total }: readonly LiveObject[],
  unmanaged: readonly Unmanaged[],
): Omit<KindCoverage, "kind"> {
  const managed = total - unmanaged.length;
  return { managed, total, percent: total === 0 ? 100 : Math.floor((100 * managed) / total) };
}

/** The file in the program's folder that lists objects which no program declares. */
export const EXCEPTIONS_FILE = "access.ignore";

/** An object, or a kind of objects, that need not be declared until a day. */
export interface Exception {
  readonly kind: string;
  /** The object's id without the namespace, or a member's e-mail address; `*` for all of the kind. */
  readonly id: string;
  /** The last day, in UTC: `2027-01-31`. */
  readonly until: string;
  readonly reason: string;
  readonly line: number;
}

const DAY = 24 * 60 * 60_000;
const LINE = /^(?<kind>\S+)\s+(?<id>"(?:[^"\\]|\\.)*"|\S+)\s+until\s+(?<until>\S+?):\s+(?<reason>\S.*)$/u;
const FORM = 'must be: <kind> <id> until <YYYY-MM-DD>: <reason>; an id with white space stands in "…"';

/**
 * Reads the exceptions in a program's folder.
 * @throws EngineError (`project`) naming the invalid line
 */
export async function readExceptions(folder: string): Promise<Exception[]> {
  const file = join(folder, EXCEPTIONS_FILE);
  const text = await ifThere(readFile(file, "utf8")).catch((cause: Error) => {
    throw new EngineError("project", `${file} cannot be read: ${cause.message}`, { cause });
  });
  return (text ?? "").split("\n").flatMap((line, index) => {
    const content = line.trim();
    return content === "" || content.startsWith("#") ? [] : [parsed(content, index + 1)];
  });
}

function parsed(content: string, line: number): Exception {
  const refuse = (why: string) => new EngineError("project", why, { field: [`${EXCEPTIONS_FILE}:${line}`] });
  const { kind = "", id = "", until = "", reason = "" } = LINE.exec(content)?.groups ?? {};
  if (kind === "") throw refuse(FORM);
  if (!(WATCHED_KINDS as readonly string[]).includes(kind)) {
    throw refuse(`the kind ${kind} is none of ${WATCHED_KINDS.join(", ")}`);
  }
  if (!z.iso.date().safeParse(until).success) throw refuse(`the end ${until} is no day like 2027-01-31`);
  return { kind, id: id.startsWith('"') ? unquoted(id, refuse) : id, until, reason, line };
}

function unquoted(text: string, refuse: (why: string) => Error): string {
  try {
    return JSON.parse(text) as string;
  } catch {
    throw refuse(`the id ${text} is no text in double quotes, as JSON has them`);
  }
}

export const hasEnded = ({ until }: Exception, now: Date): boolean =>
  now.getTime() >= Date.parse(until) + DAY;

/** The exception for an object that still holds. */
export function exceptionFor(
  exceptions: readonly Exception[],
  object: LiveObject,
  now: Date,
): Exception | undefined {
  return exceptions.find((exception) => matchesException(exception, object) && !hasEnded(exception, now));
}

/** True if an exception matches an object. */
export function matchesException({ kind, id }: Exception, object: LiveObject): boolean {
  if (kind !== object.definition.name) return false;
  if (id === "*" || id === idWithin(object)) return true;
  return kind === "Member" && id.toLowerCase() === object.name.toLowerCase();
}

export function exceptionLine(object: LiveObject, until: string, reason: string): string {
  const id = object.definition.name === "Member" ? object.name : idWithin(object);
  const text = /^[^\s"]+$/u.test(id) ? id : JSON.stringify(id);
  return `${object.definition.name} ${text} until ${until}: ${reason}`;
}
