import { EngineError } from "../../errors.ts";
import type { TargetOptions } from "../../stack.ts";
import { type ResourceState, references, topologicalOrder } from "../../state/resourceState.ts";
import type { Entry, Snapshot } from "../../state/snapshot.ts";
import { STACK_TYPE, STATE_IDENTITY_TYPE, UrnPatterns, urnQualifiedType } from "../../urn.ts";

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

function withDependents(ordered: readonly ResourceState[], start: (urn: string) => boolean): Set<string> {
  const reached = new Set<string>();
  for (const state of ordered) {
    if (start(state.urn) || references(state).some((urn) => reached.has(urn))) reached.add(state.urn);
  }
  return reached;
}

function withDependencies(ordered: readonly ResourceState[], start: ReadonlySet<string>): Set<string> {
  const reached = new Set(start);
  for (const state of [...ordered].reverse()) {
    if (!reached.has(state.urn)) continue;
    for (const urn of references(state)) reached.add(urn);
  }
  return reached;
}
