import type { NamespacePolicy, Principal } from "@gatehouse-access/sdk/policy";
import type { PolicyParts } from "../model/kind.ts";
import { type DecidingFacts, type NamespaceContent, NamespaceObjects } from "../model/namespaceObjects.ts";
import type { KindName, LiveObject, Objects } from "../model/object.ts";
import { kindNamed, kindOf, kindsWith } from "../resources/index.ts";
import { byTexts } from "../words.ts";

/**
 * Returns the objects of one kind by key. Two objects have the same key if a server does not return the values that
 * distinguish them. Each further object with the same key gets a number.
 */
export function byKey(objects: Iterable<LiveObject>): Objects {
  const byKey = new Map<string, LiveObject>();
  const counts = new Map<string, number>();
  for (const object of objects) {
    const key = kindOf(object).keyOf(object);
    let count = counts.get(key) ?? 0;
    let numbered: string;
    do {
      count += 1;
      numbered = count === 1 ? key : `${key} (${count})`;
    } while (byKey.has(numbered));
    counts.set(key, count);
    byKey.set(numbered, object);
  }
  return byKey;
}

/** The objects of a namespace by kind, either live or after a plan. */
export class NamespaceState extends NamespaceObjects {
  #policy: NamespacePolicy | undefined;

  /** The objects that authorize logins. */
  get policy(): NamespacePolicy {
    this.#policy ??= policyOf(this);
    return this.#policy;
  }

  /** The objects that coverage reports include, sorted by kind and name. */
  watched(): LiveObject[] {
    return kindsWith("watched").flatMap(({ definition, parts, watched }) => {
      const all = parts?.of(this.of) ?? [...(this.of(definition)?.values() ?? [])];
      return all.filter((object) => watched.counts?.(object) ?? true).sort(byNameAndId);
    });
  }

  /**
   * Returns a copy of the namespace in which the objects of each kind are sorted by name. Kinds whose creation order
   * affects decisions keep this order. For example, the creation order determines which of two rules with the same
   * priority takes precedence.
   */
  inOrder(): NamespaceState {
    const sorted = Array.from(this.objects, ([name, own]) => {
      if (kindNamed(name).reading?.inOrderOfCreation) return [name, own] as const;
      const byName = [...own].sort(([, left], [, right]) => byNameAndId(left, right));
      return [name, new Map(byName)] as const;
    });
    return this.with({ objects: new Map(sorted) });
  }

  /** Returns a copy of the namespace with changed content. */
  with(changes: Partial<NamespaceContent>): NamespaceState {
    return new NamespaceState({ ...this.#content(), ...changes });
  }

  /** Returns a copy of the namespace in which the given objects replace the objects of one kind. */
  withObjects({ name }: { readonly name: string }, objects: Objects): NamespaceState {
    return this.with({ objects: new Map([...this.objects, [name, objects]]) });
  }

  /** Returns a copy of the namespace without some of its objects. */
  without(objects: readonly LiveObject[]): NamespaceState {
    const left = new Map(this.objects);
    for (const some of Map.groupBy(objects, ({ definition }) => definition).values()) {
      const [first] = some;
      if (!first) continue;
      const { parts, keyOf } = kindOf(first);
      const name = (parts?.whole ?? first.definition).name;
      const own = left.get(name);
      if (!own) continue;
      if (parts) {
        const byWhole = Map.groupBy(some, parts.wholeOf);
        const changed = [...byWhole].flatMap(([key, some]) => {
          const whole = own.get(key);
          return whole ? [[key, parts.without(whole, some)] as const] : [];
        });
        left.set(name, new Map([...own, ...changed]));
      } else {
        const present = new Set(own.values());
        const [same, others] = [new Set(some), some.filter((object) => !present.has(object))];
        // After a plan, the namespace can contain a changed copy of an object. The copy has the same key.
        const keys = new Set(others.map(keyOf));
        left.set(name, new Map([...own].filter(([key, one]) => !same.has(one) && !keys.has(key))));
      }
    }
    return this.with({ objects: left });
  }

  #content(): NamespaceContent {
    const { facts, objects, unread, ofUnread, accessPoliciesDecide } = this;
    const { accessUnknown, notEvaluated, unknown } = this;
    return { facts, objects, unread, ofUnread, accessPoliciesDecide, accessUnknown, notEvaluated, unknown };
  }
}

const byNameAndId = byTexts<LiveObject>(
  ({ name }) => name,
  ({ id }) => id,
);

const byPrincipal = byTexts<Principal>(
  ({ name }) => name,
  ({ id }) => id,
);

/**
 * A cache of the policy parts that each list of objects contributes. The cache saves time, since many states share
 * their lists.
 */
const known = new WeakMap<Objects, { readonly facts: DecidingFacts; readonly parts: PolicyParts }>();

function partsOf(name: KindName, objects: Objects, facts: DecidingFacts): PolicyParts {
  const before = known.get(objects);
  if (before?.facts === facts) return before.parts;
  const parts = kindNamed(name).decides?.parts(objects.values(), facts) ?? {};
  known.set(objects, { facts, parts });
  return parts;
}

function policyOf({ objects, facts, accessPoliciesDecide }: NamespaceState): NamespacePolicy {
  const all = [...objects].map(([name, own]) => partsOf(name, own, facts));
  const of = <P extends keyof PolicyParts>(part: P) => {
    const lists = all.flatMap((parts) => (parts[part] ? [parts[part]] : []));
    return (lists.length === 1 ? lists[0] : lists.flat()) as NonNullable<PolicyParts[P]>;
  };
  const principals = () => {
    const isMixed = all.filter(({ principals }) => principals && principals.length > 0).length > 1;
    return isMixed ? of("principals").toSorted(byPrincipal) : of("principals");
  };
  const hasMembers = all.some(({ members }) => members);
  // The policy of identity mode is known only if all of its lists were read.
  const isRead = kindsWith("decides").every(
    ({ definition }) => definition.actsIn !== "identity" || objects.has(definition.name),
  );
  return {
    devices: of("devices"),
    keys: of("keys"),
    rules: of("rules"),
    ...(facts.enforcesExpiry && { members: hasMembers ? of("members") : undefined }),
    ...(accessPoliciesDecide &&
      isRead && { identity: { policies: of("policies"), principals: principals() } }),
  };
}
