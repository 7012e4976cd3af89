import type { AccessPolicy } from "@gatehouse-access/sdk/policy";
import { share } from "../estate/coverage.ts";
import { type Exception, exceptionFor } from "../estate/exceptions.ts";
import { definitionNamed, type LiveObject } from "../estate/liveObjects.ts";
import type { ManagedObjects } from "../estate/managedObjects.ts";
import { type Estate, withoutObjects } from "../estate/namespaceState.ts";
import type { ManagedObject } from "../plan/planned/plannedEstate.ts";
import { byTexts } from "../words.ts";
import { accesses, accessLines } from "./accessLines.ts";
import type { Coverage, EstateObject, ReviewedAccess, UndeclaredObject } from "./report/review.ts";
import { accessSentence, PLAIN, reachPhrase } from "./report/sections.ts";

/** What may be on a service although the reviewed program does not declare it. */
export interface Elsewhere {
  /** What the stacks manage that are named beside the reviewed one. */
  readonly managed: ManagedObjects;
  readonly exceptions: readonly Exception[];
}

/**
 * How much of a namespace programs declare, and what the rest lets people reach.
 * @param policy the namespace's once the change is made
 * @param managed what the reviewed program declares
 */
export function coverageOf(
  estate: Estate,
  policy: AccessPolicy,
  managed: readonly ManagedObject[],
  elsewhere: Elsewhere | undefined,
): Coverage {
  const isManaged = new Set(managed.map(({ kind, id }) => `${kind} ${id}`));
  const objects = declarableObjects(estate);
  const undeclared = objects
    .filter(({ kind, id }) => !isManaged.has(`${kind} ${id}`))
    .map((object) => ({ object, live: liveObject(estate, object) }))
    .filter(({ live }) => elsewhere?.managed.ownerOf(live) === undefined);
  const widening = wideningOf(
    estate,
    policy,
    undeclared.map(({ object }) => object),
  );
  const now = new Date();
  const unmanaged = undeclared.map(({ object, live }): UndeclaredObject => {
    const found = elsewhere && exceptionFor(elsewhere.exceptions, live, now);
    return {
      ...object,
      widens: widening.get(object) ?? [],
      ...(found && { exception: { until: found.until, reason: found.reason } }),
    };
  });
  return { ...share(objects.length - unmanaged.length, objects.length), unmanaged };
}

/** The objects of a namespace that a program can declare, kind by kind. The owner is none of them. */
function declarableObjects({ policy, members = [], apiKeys = [] }: Estate): EstateObject[] {
  const kinds: EstateObject[][] = [
    policy.keys.map(({ fingerprint: id, name }) => ({ kind: "PublicKey", id, name })),
    policy.rules.map(({ id, action, priority }) => ({
      ...{ kind: "FirewallRule", id, name: `${id}: ${action} at priority ${priority}` },
    })),
    members
      .filter(({ role }) => role !== "owner")
      .map(({ id, email }) => ({ kind: "Member", id, name: email })),
    apiKeys.map(({ name }) => ({ kind: "ApiKey", id: name, name })),
  ];
  return kinds.flatMap((objects) => objects.sort(byNameAndId));
}

const byNameAndId = byTexts<EstateObject>(
  ({ name }) => name,
  ({ id }) => id,
);

/** The same object as states and exceptions name it. Of API keys they know when they were made, and by whom. */
function liveObject({ tenant, apiKeys = [] }: Estate, { kind, id, name }: EstateObject): LiveObject {
  const key = kind === "ApiKey" ? apiKeys.find((candidate) => candidate.name === id) : undefined;
  return { definition: definitionNamed(kind), id: `${tenant}/${id}`, name, state: key && { ...key } };
}

/** Most rules whose own part is told: each takes an evaluation of the whole namespace. */
const RULES_MAX = 20;
/** Most sentences about one object. */
const SENTENCES_MAX = 3;

/** What each of some keys and rules lets people reach, as sentences. */
function wideningOf(
  estate: Estate,
  policy: AccessPolicy,
  objects: readonly EstateObject[],
): ReadonlyMap<EstateObject, readonly string[]> {
  const gained = (without: AccessPolicy) => {
    const { before, after } = accesses(without, policy, estate);
    return accessLines(before, after).filter(({ change }) => change === "gained");
  };
  const keys = new Set(objects.filter(({ kind }) => kind === "PublicKey").map(({ id }) => id));
  const byKey =
    keys.size === 0 ? new Map<string, string[]>() : sentencesByKey(gained(withoutObjects(policy, { keys })));
  const rules = objects.filter(({ kind }) => kind === "FirewallRule").slice(0, RULES_MAX);
  const byRule = new Map(
    rules.map(({ id }) => [
      id,
      gained(withoutObjects(policy, { rules: new Set([id]) })).map((line) => accessSentence(line, PLAIN)),
    ]),
  );
  return new Map(
    objects.map((object) => {
      const { kind, id } = object;
      const sentences = kind === "PublicKey" ? byKey.get(id) : kind === "FirewallRule" ? byRule.get(id) : [];
      return [object, firstSentences(sentences ?? [])];
    }),
  );
}

/** By fingerprint, what each key gains and loses, as sentences that follow on its name. */
export function sentencesByKey(access: readonly ReviewedAccess[]): ReadonlyMap<string, string[]> {
  const found = new Map<string, string[]>();
  for (const line of access) {
    const sentence = `${{ gained: "gives", lost: "gives no longer" }[line.change]} ${reachPhrase(line, PLAIN)}`;
    for (const { fingerprint } of line.keys) {
      const known = found.get(fingerprint);
      if (known) known.push(sentence);
      else found.set(fingerprint, [sentence]);
    }
  }
  return found;
}

/** The first sentences about one object, and how many more there are. */
export function firstSentences(sentences: readonly string[]): string[] {
  const more = sentences.length - SENTENCES_MAX;
  return more > 0 ? [...sentences.slice(0, SENTENCES_MAX), `and ${more} more`] : [...sentences];
}
