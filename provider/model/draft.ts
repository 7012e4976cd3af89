import type { Role } from "@gatehouse-access/sdk/contract";
import type { Values } from "../values.ts";
import type { NamespaceObjects, PlanSides } from "./namespaceObjects.ts";
import type { KindName, LiveObject, Objects } from "./object.ts";
import { UnpredictableError } from "./plannedStep.ts";

type Definition = LiveObject["definition"];

/** The {@link PlanSides} of a draft, which the steps of the plan can change. */
interface DraftSides extends PlanSides {
  readonly was: Map<string, LiveObject>;
  readonly is: Map<string, LiveObject>;
}

/** The facts about an object that exists only in the plan. */
const PLANNED = { isPlanned: true };

/**
 * A copy of a namespace that predicts the namespace after a plan. The steps of the plan are applied to the copy one by
 * one.
 */
export class Draft {
  readonly live: NamespaceObjects;
  /** The time at which the plan is applied. */
  readonly now: Date;
  /** The role of the user or API key that applies the plan. Undefined if the role is unknown. */
  readonly creatorRole: Role | undefined;
  /**
   * The ids of key owners, as the state contains them. The map key is the owner's declared e-mail address in lower
   * case.
   */
  readonly statedOwners: ReadonlyMap<string, string>;
  /** The ids of the principals that the plan creates, by the URN of the principal's resource. */
  readonly newPrincipals = new Map<string, string>();
  /** True if access policies authorize logins. */
  accessPoliciesDecide: boolean;
  /**
   * The number of changes so far. A value that was computed from the objects is outdated if this number has increased
   * since.
   */
  changes = 0;
  readonly #changed = new Map<KindName, Map<string, LiveObject>>();
  /** The objects that the plan contains, before and after the plan. Only for kinds whose objects could not be read. */
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

  /** Returns the objects of a kind, by key. Returns undefined if the objects could not be read. */
  readonly of = ({ name }: Pick<Definition, "name">): Objects | undefined =>
    this.#changed.get(name) ?? this.live.of({ name });

  /** Returns all objects by kind, in the form of {@link NamespaceObjects.objects}. */
  objects(): ReadonlyMap<KindName, Objects> {
    return new Map<KindName, Objects>([...this.live.objects, ...this.#changed]);
  }

  /** Returns the object with this key, or undefined if no object has the key. */
  find(definition: Definition, key: string): LiveObject | undefined {
    const own = this.of(definition) ?? this.#unread.get(definition.name)?.is;
    return own?.get(key);
  }

  /**
   * Returns the object with this key.
   * @throws UnpredictableError if the object no longer exists
   */
  existing(definition: Definition, key: string): LiveObject {
    const object = this.find(definition, key);
    if (!object)
      throw new UnpredictableError("its object no longer exists; refresh the state and plan again");
    return object;
  }

  /**
   * Adds or replaces an object. If the objects of the kind could not be read, only {@link ofUnread} returns the object.
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

  /** Adds the object of a resource in the state. Does nothing if the objects of the kind could be read. */
  assume(definition: Definition, key: string, state: Values): void {
    if (this.of(definition)) return;
    const { was, is } = this.#unreadOf(definition);
    const object = this.#objectOf(definition, key, state);
    was.set(key, object);
    is.set(key, object);
  }

  /**
   * Returns the objects that the plan contains, before and after the plan. Only for kinds whose objects could not be
   * read.
   */
  ofUnread(): ReadonlyMap<KindName, PlanSides> {
    return this.#unread;
  }

  /** Removes all objects. */
  clear(): void {
    for (const name of this.live.objects.keys()) this.#changed.set(name, new Map());
  }

  /**
   * Returns an unused placeholder key for a new object. The resource's name alone is not unique, because resources with
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
