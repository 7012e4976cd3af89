import { type ManagedObjects, share, shownObject, unmanagedOf } from "../estate/coverage.ts";
import type { Exception } from "../estate/exceptions.ts";
import { definitionNamed, type LiveObject } from "../estate/liveObjects.ts";
import { type Estate, withoutObjects } from "../estate/namespaceState.ts";
import type { PlannedEstate } from "../plan/planned/plannedEstate.ts";
import { idWithin } from "../resources/values.ts";
import { byTexts } from "../words.ts";
import { accesses, accessLines, firstSentences, sentencesByKey } from "./accessLines.ts";
import type { Coverage, EstateObject, UndeclaredObject } from "./report/review.ts";
import { accessSentence, PLAIN } from "./report/sections.ts";

/** What may be on a service although the reviewed program does not declare it. */
export interface Elsewhere {
  /** What the stacks manage that are named beside the reviewed one. */
  readonly managed: ManagedObjects;
  readonly exceptions: readonly Exception[];
}

/**
 * How much of a namespace programs declare, and what the unmanaged objects let people reach.
 * @param planned the namespace once the change is made
 */
export function unmanagedAccess(
  estate: Estate,
  planned: PlannedEstate,
  elsewhere: Elsewhere | undefined,
): Coverage {
  const urns = new Map(planned.managed.map(({ kind, id, urn }) => [`${kind} ${id}`, urn]));
  const managed = {
    ownerOf: (object: LiveObject) =>
      urns.get(`${object.definition.name} ${idWithin(object)}`) ?? elsewhere?.managed.ownerOf(object),
  };
  const objects = declarableObjects(estate);
  const unmanaged = unmanagedOf(objects, managed, elsewhere?.exceptions ?? []);
  const widening = wideningOf(
    estate,
    planned,
    unmanaged.map(({ object }) => object),
  );
  return {
    ...share(objects, unmanaged),
    unmanaged: unmanaged.map((one): UndeclaredObject => {
      const { kind, id, name, ...excepted } = shownObject(one);
      const widens = widening.get(one.object) ?? [];
      return { kind: kind as EstateObject["kind"], id, name, widens, ...excepted };
    }),
  };
}

/** The objects of a namespace that a review counts, kind by kind. The owner is none of them. */
function declarableObjects({ tenant, policy, members = [], apiKeys = [] }: Estate): LiveObject[] {
  const objectOf = (kind: EstateObject["kind"], id: string, name: string, state?: LiveObject["state"]) => ({
    ...{ definition: definitionNamed(kind), id: `${tenant}/${id}`, name, state },
  });
  const kinds: LiveObject[][] = [
    policy.keys.map(({ fingerprint, name }) => objectOf("PublicKey", fingerprint, name)),
    policy.rules.map(({ id, action, priority }) =>
      objectOf("FirewallRule", id, `${id}: ${action} at priority ${priority}`),
    ),
    members.filter(({ role }) => role !== "owner").map(({ id, email }) => objectOf("Member", id, email)),
    // States know an API key by when it was made, and by whom.
    apiKeys.map((key) => objectOf("ApiKey", key.name, key.name, { ...key })),
  ];
  return kinds.flatMap((objects) => objects.sort(byNameAndId));
}

const byNameAndId = byTexts<LiveObject>(
  ({ name }) => name,
  ({ id }) => id,
);

/** Most rules whose own part is told: each takes an evaluation of the whole namespace. */
const RULES_MAX = 20;

/** What each of some keys and rules lets people reach, as sentences. */
function wideningOf(
  estate: Estate,
  planned: PlannedEstate,
  objects: readonly LiveObject[],
): ReadonlyMap<LiveObject, readonly string[]> {
  const gainedBy = (some: readonly LiveObject[]) => {
    const { before, after } = accesses(withoutObjects(planned, some).policy, planned.policy, estate);
    return accessLines(before, after).filter(({ change }) => change === "gained");
  };
  const ofKind = (kind: string) => objects.filter(({ definition }) => definition.name === kind);
  const keys = ofKind("PublicKey");
  const byKey = keys.length === 0 ? new Map<string, string[]>() : sentencesByKey(gainedBy(keys));
  const byRule = ofKind("FirewallRule")
    .slice(0, RULES_MAX)
    .map((rule) => [rule, gainedBy([rule]).map((line) => accessSentence(line, PLAIN))] as const);
  return new Map(
    [...keys.map((key) => [key, byKey.get(idWithin(key)) ?? []] as const), ...byRule].map(
      ([object, sentences]) => [object, firstSentences(sentences)],
    ),
  );
}
