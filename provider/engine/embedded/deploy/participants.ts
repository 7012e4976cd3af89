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

/** The resources that take part in a run. A resource must be asked about after those that it refers to. */
export class Participants {
  readonly #options: TargetOptions;
  readonly #targets: UrnPatterns;
  readonly #excludes: UrnPatterns;
  /** URNs of targets, or of excluded resources, and of their dependents, as far as they were asked about. */
  readonly #found = new Set<string>();

  constructor(options: TargetOptions) {
    this.#options = options;
    this.#targets = new UrnPatterns(options.target);
    this.#excludes = new UrnPatterns(options.exclude);
  }

  /** True where a resource takes part. @param refs URNs that it refers to */
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

  /** The same for an update, in which the stack's root and the identity of its state always take part. */
  updates(urn: string, refs: readonly string[]): boolean {
    const included = this.includes(urn, refs);
    return included || [STACK_TYPE, STATE_IDENTITY_TYPE].includes(urnQualifiedType(urn));
  }

  /** Divides entries of a state by whether they may be deleted, or must be for a target to be deleted. */
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

  /** Why a resource may not be deleted that must be for a target to be deleted; undefined where it may. */
  refusal(urn: string): string | undefined {
    if (this.#targets.empty || this.#options.targetDependents || this.#targets.has(urn)) return undefined;
    return (
      "it would be deleted, because it depends on a target, but it is not a target itself; " +
      "add it with --target, or all that depend on targets with --target-dependents"
    );
  }

  /** @throws EngineError (`target`) where a URN without wildcards is no resource */
  requireKnown(known: (urn: string) => boolean): void {
    requireKnown([...this.#targets.urns, ...this.#excludes.urns], known);
  }
}

/** @throws EngineError (`target`) where a URN is no resource */
export function requireKnown(urns: readonly string[], known: (urn: string) => boolean): void {
  const missing = urns.filter((urn) => !known(urn));
  if (missing.length === 0) return;
  const hint = missing.some((urn) => !urn.includes("$"))
    ? ' Put urns in single quotes: a shell takes what follows a "$" for a variable.'
    : "";
  throw new EngineError(
    "target",
    `There is no such resource in the stack: ${missing.join(", ")}.${hint} Nothing was changed.`,
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

/** Which entry of the state each resource of the program has taken, by its URN or a former one. */
export class TakenEntries {
  readonly #snapshot: Snapshot;
  readonly #olds = new Map<string, Entry>();
  readonly #inState: ReadonlySet<string>;
  readonly #registered = new Set<string>();
  readonly #kept = new Map<string, Entry>();
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

  /** Notes the new state of a resource, with a new key where it has no old entry; returns its key. */
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

  /** The entries that no resource of the program has taken, and old objects of replacements: they are to be deleted. */
  left(): Entry[] {
    return this.#snapshot
      .entries()
      .filter(({ key, state }) => state.delete === true || !this.#taken.has(key));
  }
}
