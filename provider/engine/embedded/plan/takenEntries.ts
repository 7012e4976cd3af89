import type { ResourceState } from "../../state/resourceState.ts";
import type { Entry, Snapshot } from "../../state/snapshot.ts";
import type { Goal } from "../program/goal.ts";

/** Which entry of the state belongs to which resource of the program, by its urn or a former one. */
export class Claims {
  readonly #snapshot: Snapshot;
  readonly #olds = new Map<string, Entry>();
  readonly #inState: ReadonlySet<string>;
  readonly #seen = new Set<string>();
  readonly #kept = new Map<string, { key: string; state: ResourceState }>();
  readonly #touched = new Set<string>();
  /** Former urns that were claimed, with who claimed them. */
  readonly #claimedBy = new Map<string, string>();
  readonly #formerUrns = new Map<string, string>();

  constructor(snapshot: Snapshot) {
    this.#snapshot = snapshot;
    const entries = snapshot.entries();
    this.#inState = new Set(entries.map(({ state }) => state.urn));
    for (const entry of entries) if (!entry.state.delete) this.#olds.set(entry.state.urn, entry);
  }

  /** The urn under which the state knew a resource that has another one now. */
  formerUrn(urn: string): string | undefined {
    return this.#formerUrns.get(urn);
  }

  /** True where the urn was registered, or is in the state. */
  knows(urn: string): boolean {
    return this.#seen.has(urn) || this.#inState.has(urn);
  }

  /**
   * Finds the entry of a resource that is being registered; from here on it is taken. Throws where its urn, or a
   * former one, is another resource's.
   */
  take(goal: Goal): Entry | undefined {
    const { urn } = goal;
    if (this.#seen.has(urn)) {
      throw new Error(`two resources of the program have the urn ${urn}; give one of them another name`);
    }
    this.#seen.add(urn);
    const claimer = this.#claimedBy.get(urn);
    if (claimer) {
      throw new Error(
        `its urn ${urn} was claimed by an alias of ${claimer}; give it another name, or take the alias away`,
      );
    }
    const found = [urn, ...goal.aliases].find((candidate) => this.#olds.has(candidate));
    if (found === undefined) return undefined;
    if (found !== urn) this.#claimFormer(urn, found);
    const entry = this.#olds.get(found) as Entry;
    this.#touched.add(entry.key);
    // An earlier step of this run may have changed the entry.
    return { key: entry.key, state: this.#snapshot.get(entry.key) ?? entry.state };
  }

  #claimFormer(urn: string, former: string): void {
    const other = this.#seen.has(former) ? former : this.#claimedBy.get(former);
    if (other) {
      throw new Error(
        `its alias ${former} belongs to ${other === former ? "a resource of the program" : `an alias of ${other}`}; ` +
          `take the alias away, or the other resource`,
      );
    }
    this.#claimedBy.set(former, urn);
    this.#formerUrns.set(urn, former);
  }

  /** From here on the state calls a resource that was found by a former urn by its new one. */
  rename(goal: Goal): void {
    const former = this.#formerUrns.get(goal.urn);
    if (former) this.#snapshot.rename(former, goal.urn);
  }

  /** The entry of a resource that no program registers, such as the default provider. */
  takeUrn(urn: string): { key: string; state: ResourceState | undefined } {
    const old = this.#olds.get(urn);
    const key = old?.key ?? this.#snapshot.newKey();
    this.#touched.add(key);
    return { key, state: old?.state };
  }

  /** Notes what a registered resource is now; returns its key. */
  keep(urn: string, old: Entry | undefined, state: ResourceState): string {
    const key = old?.key ?? this.#snapshot.newKey();
    this.#touched.add(key);
    this.#kept.set(urn, { key, state });
    return key;
  }

  /** What a registered resource is now. */
  kept(urn: string): { key: string; state: ResourceState } | undefined {
    return this.#kept.get(urn);
  }

  /** All registered resources. */
  all(): ResourceState[] {
    return [...this.#kept.values()].map(({ state }) => state);
  }

  /** True where the program still has the resource of this entry. */
  isTouched(key: string): boolean {
    return this.#touched.has(key);
  }
}
