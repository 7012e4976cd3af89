import type { ResourceState } from "../../state/resourceState.ts";
import type { Entry, Snapshot } from "../../state/snapshot.ts";
import type { Goal } from "../program/goal.ts";

/** Which entry of the state each resource of the program has taken, by its URN or a former one. */
export class TakenEntries {
  readonly #snapshot: Snapshot;
  /** The entries of the state, by URN. */
  readonly #olds = new Map<string, Entry>();
  readonly #inState: ReadonlySet<string>;
  /** The URNs that were registered. */
  readonly #registered = new Set<string>();
  /** What registered resources are now, by URN. */
  readonly #kept = new Map<string, Entry>();
  /** The keys of entries that the program still has. */
  readonly #taken = new Set<string>();
  /** The URNs of resources that were found by a former URN, by that one, and the other way round. */
  readonly #byFormer = new Map<string, string>();
  readonly #formerUrns = new Map<string, string>();

  constructor(snapshot: Snapshot) {
    this.#snapshot = snapshot;
    const entries = snapshot.entries();
    this.#inState = new Set(entries.map(({ state }) => state.urn));
    for (const entry of entries) if (!entry.state.delete) this.#olds.set(entry.state.urn, entry);
  }

  /** The URN that a resource has in the state, where it has another one now. */
  formerUrn(urn: string): string | undefined {
    return this.#formerUrns.get(urn);
  }

  /** True where the URN was registered, or is in the state. */
  knows(urn: string): boolean {
    return this.#registered.has(urn) || this.#inState.has(urn);
  }

  /**
   * Takes the entry of a resource that is being registered; undefined where it has none.
   * @throws Error where its URN, or a former one, belongs to another resource
   */
  take({ urn, aliases }: Goal): Entry | undefined {
    if (this.#registered.has(urn)) {
      throw new Error(`two resources of the program have the urn ${urn}; give one of them another name`);
    }
    this.#registered.add(urn);
    const other = this.#byFormer.get(urn);
    if (other) {
      throw new Error(
        `its urn ${urn} was claimed by an alias of ${other}; give it another name, or take the alias away`,
      );
    }
    const found = [urn, ...aliases].find((candidate) => this.#olds.has(candidate));
    if (found === undefined) return undefined;
    if (found !== urn) this.#takeFormer(urn, found);
    const { key, state } = this.#olds.get(found) as Entry;
    this.#taken.add(key);
    // An earlier step of this run may have changed the entry.
    return { key, state: this.#snapshot.get(key) ?? state };
  }

  #takeFormer(urn: string, former: string): void {
    const other = this.#registered.has(former) ? former : this.#byFormer.get(former);
    if (other) {
      throw new Error(
        `its alias ${former} belongs to ${other === former ? "a resource of the program" : `an alias of ${other}`}; ` +
          `take the alias away, or the other resource`,
      );
    }
    this.#byFormer.set(former, urn);
    this.#formerUrns.set(urn, former);
  }

  /** Gives a resource that was found by a former URN its new one in the state. */
  rename({ urn }: Goal): void {
    const former = this.#formerUrns.get(urn);
    if (former) this.#snapshot.rename(former, urn);
  }

  /** Takes the entry of a resource that no program registers, such as the default provider. */
  takeUrn(urn: string): { key: string; state: ResourceState | undefined } {
    const old = this.#olds.get(urn);
    const key = old?.key ?? this.#snapshot.newKey();
    this.#taken.add(key);
    return { key, state: old?.state };
  }

  /**
   * Notes what a registered resource is now; returns its key.
   * @param old its entry so far; a new one is made where it is left out
   */
  keep(urn: string, old: Pick<Entry, "key"> | undefined, state: ResourceState): string {
    const key = old?.key ?? this.#snapshot.newKey();
    this.#taken.add(key);
    this.#kept.set(urn, { key, state });
    return key;
  }

  /** What a registered resource is now. */
  kept(urn: string): Entry | undefined {
    return this.#kept.get(urn);
  }

  /** All registered resources as they are now. */
  all(): ResourceState[] {
    return [...this.#kept.values()].map(({ state }) => state);
  }

  /** The entries that no resource of the program has taken, and old objects of replacements: they are to be deleted. */
  left(): Entry[] {
    return this.#snapshot
      .entries()
      .filter(({ key, state }) => state.delete === true || !this.#taken.has(key));
  }
}
