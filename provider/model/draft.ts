import type { Role } from "@gatehouse-access/sdk/contract";
import type { Values } from "../values.ts";
import type { NamespaceObjects, PlanSides } from "./namespaceObjects.ts";
import type { KindName, LiveObject, Objects } from "./object.ts";
import { UnpredictableError } from "./plannedStep.ts";

type Definition = LiveObject["definition"];

/** The {@link PlanSides} of a draft. */
interface DraftSides extends PlanSides {
  readonly was: Map<string, LiveObject>;
  readonly is: Map<string, LiveObject>;
}

/** The facts about an object that only the plan contains. */
const PLANNED = { isPlanned: true };

/**
 * A copy of a namespace to which the steps of a plan are applied one by one, to predict the namespace after the plan.
 */
export class Draft {
  readonly live: NamespaceObjects;
  /** Time at which the plan is applied. */
  readonly now: Date;
  /** The role of the user or API key that applies the plan; undefined if unknown. */
  readonly creatorRole: Role | undefined;
  /** The ids of key owners in the state, by the declared e-mail address in lower case. */
  readonly statedOwners: ReadonlyMap<string, string>;
  /** The ids of principals that the plan creates, by the URN of their resource. */
  readonly newPrincipals = new Map<string, string>();
  /** True if access policies authorize logins. */
  accessPoliciesDecide: boolean;
  /** The number of changes so far, which shows whether a value that was computed from the objects is outdated. */
  changes = 0;
  readonly #changed = new Map<KindName, Map<string, LiveObject>>();
  /** The objects of the plan, of kinds that could not be read: before and after the plan. */
  readonly #unread = new Map<KindName, DraftSides>();

  constructor(
    live: NamespaceObjects,
    now: Date,
    creatorRole: Role | undefined,
    statedOwners: ReadonlyMap<string, string> = new Map(),
  ) {
    this.live = live;
    this.now = now;
    this.creatorRole = creatorRole;
    this.statedOwners = statedOwners;
    this.accessPoliciesDecide = live.accessPoliciesDecide;
  }

  /** Returns the objects of a kind, by key. Undefined if they could not be read. */
  readonly of = ({ name }: Pick<Definition, "name">): Objects | undefined =>
    this.#changed.get(name) ?? this.live.of({ name });

  /** All objects by kind, as a {@link NamespaceObjects} contains them. */
  objects(): ReadonlyMap<KindName, Objects> {
    return new Map<KindName, Objects>([...this.live.objects, ...this.#changed]);
  }

  /** Returns the object with this key; undefined if there is none. */
  find(definition: Definition, key: string): LiveObject | undefined {
    const own = this.of(definition) ?? this.#unread.get(definition.name)?.is;
    return own?.get(key);
  }

  /** Returns the object with this key. @throws UnpredictableError if the object no longer exists */
  existing(definition: Definition, key: string): LiveObject {
    const object = this.find(definition, key);
    if (!object)
      throw new UnpredictableError("its object no longer exists; refresh the state and plan again");
    return object;
  }

  /**
   * Adds or replaces an object. If the objects of the kind could not be read, the object is only part of
   * {@link ofUnread}.
   */
  put(definition: Definition, key: string, state: Values, object?: LiveObject): void {
    const own = this.#changing(definition) ?? this.#unreadOf(definition).is;
    const before = object ?? own.get(key);
    own.set(key, {
      ...(before ?? { facts: PLANNED }),
      ...this.#objectOf(definition, key, state, before?.id),
    });
  }

  /** Removes the object with this key. */
  remove(definition: Definition, key: string): void {
    (this.#changing(definition) ?? this.#unread.get(definition.name)?.is)?.delete(key);
  }

  /** Adds the object of a resource in the state if the objects of its kind could not be read. */
  assume(definition: Definition, key: string, state: Values): void {
    if (this.of(definition)) return;
    const { was, is } = this.#unreadOf(definition);
    const object = this.#objectOf(definition, key, state);
    was.set(key, object);
    is.set(key, object);
  }

  /** Returns the objects of the plan, of kinds that could not be read: before and after the plan. */
  ofUnread(): ReadonlyMap<KindName, PlanSides> {
    return this.#unread;
  }

  /** Removes all objects. */
  clear(): void {
    for (const name of this.live.objects.keys()) this.#changed.set(name, new Map());
  }

  /**
   * Returns an unused placeholder key for a new object. The resource name alone is not unique, since resources with
   * different parents may have the same name.
   */
  newKey(definition: Definition, name: string, count = 1): string {
    const key = count === 1 ? `${name} (new)` : `${name} (new, ${count})`;
    return this.of(definition)?.has(key) ? this.newKey(definition, name, count + 1) : key;
  }

  #objectOf(
    definition: Definition,
    key: string,
    state: Values,
    id = `${this.live.tenant}/${key}`,
  ): LiveObject {
    return { definition, id, name: definition.displayName?.(state) ?? String(state.name ?? key), state };
  }

  #unreadOf({ name }: Definition): DraftSides {
    const known = this.#unread.get(name) ?? { was: new Map(), is: new Map() };
    this.#unread.set(name, known);
    return known;
  }

  #changing({ name }: Definition): Map<string, LiveObject> | undefined {
    this.changes += 1;
    const known = this.#changed.get(name);
    const live = this.live.of({ name });
    if (known || !live) return known;
    const copy = new Map(live);
    this.#changed.set(name, copy);
    return copy;
  }
}
