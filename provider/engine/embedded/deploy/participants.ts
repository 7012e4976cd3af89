import { STACK_TYPE, STATE_IDENTITY_TYPE, UrnPatterns, urnQualifiedType } from "../../../urn.ts";
import { EngineError } from "../../errors.ts";
import type { TargetOptions } from "../../model.ts";
import {
  type ResourceState,
  references,
  topologicalOrder,
  withDependents,
} from "../../state/resourceState.ts";
import type { Entry, Snapshot } from "../../state/snapshot.ts";
import type { Goal } from "../program/monitorServer.ts";

/**
 * Selects the resources that take part in a run. Call the methods for a resource only after you called them for all
 * resources that it refers to.
 */
export class Participants {
  readonly #options: TargetOptions;
  readonly #targets: UrnPatterns;
  readonly #excludes: UrnPatterns;
  /**
   * URNs of the evaluated resources that match `target` or `exclude`. If the options include dependents, also contains
   * the URNs of their dependents. A resource is evaluated after all resources that it refers to.
   */
  readonly #found = new Set<string>();

  constructor(options: TargetOptions) {
    this.#options = options;
    this.#targets = new UrnPatterns(options.target);
    this.#excludes = new UrnPatterns(options.exclude);
  }

  /**
   * Returns true if the resource takes part in the run according to the options `target` and `exclude`.
   * @param refs URNs that the resource refers to
   */
  includes(urn: string, refs: readonly string[]): boolean {
    const { targetDependents = false, excludeDependents = false } = this.#options;
    if (!this.#targets.empty) return this.#matches(this.#targets, targetDependents, urn, refs);
    return !this.#matches(this.#excludes, excludeDependents, urn, refs);
  }

  #matches(patterns: UrnPatterns, dependents: boolean, urn: string, refs: readonly string[]): boolean {
    const follows = dependents && refs.some((ref) => patterns.has(ref) || this.#found.has(ref));
    const matches = follows || patterns.has(urn);
    if (matches) this.#found.add(urn);
    return matches;
  }

  /**
   * Returns true if a resource takes part in an update. The stack's root resource and the resource that identifies the
   * state always take part.
   */
  updates(urn: string, refs: readonly string[]): boolean {
    const included = this.includes(urn, refs);
    return included || [STACK_TYPE, STATE_IDENTITY_TYPE].includes(urnQualifiedType(urn));
  }

  /**
   * Divides state entries into entries that the run deletes and entries that it keeps. The run also deletes the
   * dependents of deleted targets.
   */
  divide(entries: readonly Entry[], all: Snapshot): { condemned: Entry[]; staying: Entry[] } {
    const deletable = this.#deletable(all.entries().map(({ state }) => state));
    const isCondemned = ({ state }: Entry) => deletable.has(state.urn);
    return {
      condemned: entries.filter(isCondemned),
      staying: entries.filter((entry) => !isCondemned(entry)),
    };
  }

  #deletable(states: readonly ResourceState[]): ReadonlySet<string> {
    const ordered = topologicalOrder(states);
    if (!this.#targets.empty) return withDependents(ordered, (urn) => this.#targets.has(urn));
    const kept = this.#options.excludeDependents
      ? withDependents(ordered, (urn) => this.#excludes.has(urn))
      : new Set(ordered.map((state) => state.urn).filter((urn) => this.#excludes.has(urn)));
    const needed = withDependencies(ordered, kept);
    return new Set(ordered.map((state) => state.urn).filter((urn) => !needed.has(urn)));
  }

  /**
   * Returns the reason why the run must not delete a resource that depends on a target. Returns undefined if the run
   * may delete the resource.
   */
  refusal(urn: string): string | undefined {
    if (this.#targets.empty || this.#options.targetDependents || this.#targets.has(urn)) return undefined;
    return (
      "it would be deleted, because it depends on a target, but it is not a target itself; " +
      "add it with --target, or add all dependents of targets with --target-dependents"
    );
  }

  /** @throws EngineError (`target`) if a URN without wildcards matches no resource */
  requireKnown(known: (urn: string) => boolean): void {
    requireKnown([...this.#targets.urns, ...this.#excludes.urns], known);
  }
}

/** @throws EngineError (`target`) if a URN matches no resource */
export function requireKnown(urns: readonly string[], known: (urn: string) => boolean): void {
  const missing = urns.filter((urn) => !known(urn));
  if (missing.length === 0) return;
  const hint = missing.some((urn) => !urn.includes("$"))
    ? ' Put URNs in single quotes, since a shell expands "$" in them.'
    : "";
  throw new EngineError(
    "target",
    `The stack has no such resource: ${missing.join(", ")}.${hint} Nothing was changed.`,
  );
}

function withDependencies(ordered: readonly ResourceState[], start: ReadonlySet<string>): Set<string> {
  const reached = new Set(start);
  for (const state of [...ordered].reverse()) {
    if (!reached.has(state.urn)) continue;
    for (const urn of references(state)) reached.add(urn);
  }
  return reached;
}

/**
 * Assigns the entries of the state to the resources of the program, by the current or a former URN of each resource.
 */
export class TakenEntries {
  readonly #snapshot: Snapshot;
  readonly #olds = new Map<string, Entry>();
  readonly #inState: ReadonlySet<string>;
  readonly #registered = new Set<string>();
  readonly #kept = new Map<string, Entry>();
  readonly #taken = new Set<string>();
  /**
   * Resources whose state entry was found by a former URN (an alias). `#byFormer` maps each former URN to the current
   * URN, and `#formerUrns` maps each current URN to the former URN.
   */
  readonly #byFormer = new Map<string, string>();
  readonly #formerUrns = new Map<string, string>();

  constructor(snapshot: Snapshot) {
    this.#snapshot = snapshot;
    const entries = snapshot.entries();
    this.#inState = new Set(entries.map(({ state }) => state.urn));
    for (const entry of entries) if (!entry.state.delete) this.#olds.set(entry.state.urn, entry);
  }

  /**
   * Returns the former URN of a resource whose URN in the program differs from its URN in the state. Returns undefined
   * for other resources.
   */
  formerUrn(urn: string): string | undefined {
    return this.#formerUrns.get(urn);
  }

  knows(urn: string): boolean {
    return this.#registered.has(urn) || this.#inState.has(urn);
  }

  /**
   * Returns the state entry of a resource that the program registers, and marks the entry as used. Returns undefined if
   * the state has no entry for the resource.
   * @throws Error if the URN or a former URN belongs to a different resource
   */
  take({ urn, aliases }: Goal): Entry | undefined {
    if (this.#registered.has(urn)) {
      throw new Error(`two resources of the program have the URN ${urn}; rename one of them`);
    }
    this.#registered.add(urn);
    const other = this.#byFormer.get(urn);
    if (other) {
      throw new Error(
        `its URN ${urn} is already assigned to an alias of ${other}; rename the resource, or remove the alias`,
      );
    }
    const found = [urn, ...aliases].find((candidate) => this.#olds.has(candidate));
    if (found === undefined) return undefined;
    if (found !== urn) this.#takeFormer(urn, found);
    const { key, state } = this.#olds.get(found) as Entry;
    this.#taken.add(key);
    // Reads the entry again, since an earlier step of this run may have changed the entry.
    return { key, state: this.#snapshot.get(key) ?? state };
  }

  #takeFormer(urn: string, former: string): void {
    const other = this.#registered.has(former) ? former : this.#byFormer.get(former);
    if (other) {
      throw new Error(
        `its alias ${former} belongs to ${other === former ? "a resource of the program" : `an alias of ${other}`}; ` +
          `remove the alias or the other resource`,
      );
    }
    this.#byFormer.set(former, urn);
    this.#formerUrns.set(urn, former);
  }

  /** Renames a resource in the state if its entry was found by a former URN. */
  rename({ urn }: Goal): void {
    const former = this.#formerUrns.get(urn);
    if (former) this.#snapshot.rename(former, urn);
  }

  /**
   * Returns the state entry of a resource that programs do not register, such as the default provider, and marks the
   * entry as used.
   */
  takeUrn(urn: string): { key: string; state: ResourceState | undefined } {
    const old = this.#olds.get(urn);
    const key = old?.key ?? this.#snapshot.newKey();
    this.#taken.add(key);
    return { key, state: old?.state };
  }

  /**
   * Records the new state of a resource, and returns the key of its entry. A resource without an old entry gets a new
   * key.
   */
  keep(urn: string, old: Pick<Entry, "key"> | undefined, state: ResourceState): string {
    const key = old?.key ?? this.#snapshot.newKey();
    this.#taken.add(key);
    this.#kept.set(urn, { key, state });
    return key;
  }

  kept(urn: string): Entry | undefined {
    return this.#kept.get(urn);
  }

  all(): ResourceState[] {
    return [...this.#kept.values()].map(({ state }) => state);
  }

  /**
   * Returns the entries to delete: entries that belong to no resource of the program, and deposed objects (old objects
   * that a replacement did not delete).
   */
  left(): Entry[] {
    return this.#snapshot
      .entries()
      .filter(({ key, state }) => state.delete === true || !this.#taken.has(key));
  }
}
