import type { Role } from "@gatehouse-access/sdk/contract";
import { definitionsByName, type KindName } from "../resources/index.ts";
import type { NamespaceObjects } from "./namespaceObjects.ts";
import type { LiveObject, Objects, Values } from "./object.ts";
import { UnpredictableError } from "./plannedStep.ts";

type Definition = Pick<LiveObject["definition"], "name">;

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
  /** True if access policies decide about logins. */
  accessPoliciesDecide: boolean;
  /** The number of changes so far, which shows whether a value that was computed from the objects is outdated. */
  changes = 0;
  readonly #changed = new Map<KindName, Map<string, LiveObject>>();

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
  readonly of = ({ name }: Definition): Objects | undefined =>
    this.#changed.get(name as KindName) ?? this.live.of({ name });

  /** All objects by kind, as a {@link NamespaceObjects} contains them. */
  objects(): ReadonlyMap<KindName, Objects> {
    return new Map<KindName, Objects>([...this.live.objects, ...this.#changed]);
  }

  /** Returns the object with this key. @throws UnpredictableError if the object no longer exists */
  existing(definition: Definition, key: string): LiveObject {
    const object = this.of(definition)?.get(key);
    if (!object)
      throw new UnpredictableError("its object no longer exists; refresh the state and plan again");
    return object;
  }

  /** Adds or replaces an object. Does nothing if the objects of the kind could not be read. */
  put(definition: Definition, key: string, state: Values, object?: LiveObject): void {
    const own = this.#changing(definition);
    if (!own) return;
    const name = definition.name as KindName;
    const whole = definitionsByName[name];
    const before = object ?? own.get(key);
    const id = before?.id ?? `${this.live.tenant}/${key}`;
    const displayed = whole.displayName?.(state) ?? String(state.name ?? key);
    own.set(key, { ...before, definition: whole, id, name: displayed, state });
  }

  /** Removes the object with this key. */
  remove(definition: Definition, key: string): void {
    this.#changing(definition)?.delete(key);
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

  #changing({ name }: Definition): Map<string, LiveObject> | undefined {
    this.changes += 1;
    const known = this.#changed.get(name as KindName);
    const live = this.live.of({ name });
    if (known || !live) return known;
    const copy = new Map(live);
    this.#changed.set(name as KindName, copy);
    return copy;
  }
}
