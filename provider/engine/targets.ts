import { EngineError } from "./errors.ts";

/** Limits a run to some of the stack's resources. URNs may hold `*` (within a part of the URN) and `**`. */
export interface TargetOptions {
  /** URNs of the only resources that take part. */
  readonly target?: readonly string[];
  /** Resources that depend on a target take part as well. @default false */
  readonly targetDependents?: boolean;
  /** URNs of resources that take no part. Not together with `target`. */
  readonly exclude?: readonly string[];
  /** Resources that depend on an excluded one take no part either. @default false */
  readonly excludeDependents?: boolean;
}

/** @throws EngineError (`usage`) where options contradict each other */
export function checkTargetOptions(options: TargetOptions): void {
  const targets = (options.target?.length ?? 0) > 0;
  const excludes = (options.exclude?.length ?? 0) > 0;
  if (targets && excludes) throw new EngineError("usage", "--target and --exclude cannot be combined.");
  if (options.targetDependents && !targets) {
    throw new EngineError("usage", "--target-dependents needs a --target.");
  }
  if (options.excludeDependents && !excludes) {
    throw new EngineError("usage", "--exclude-dependents needs an --exclude.");
  }
}

/** A set of URNs, some of them given by wildcards. */
export class UrnPatterns {
  readonly #urns: ReadonlySet<string>;
  readonly #globs: RegExp[];

  constructor(patterns: readonly string[] = []) {
    this.#urns = new Set(patterns.filter((pattern) => !pattern.includes("*")));
    this.#globs = patterns.filter((pattern) => pattern.includes("*")).map(globExpression);
  }

  /** True where there is nothing in the set. */
  get empty(): boolean {
    return this.#urns.size === 0 && this.#globs.length === 0;
  }

  has(urn: string): boolean {
    return this.#urns.has(urn) || this.#globs.some((glob) => glob.test(urn));
  }

  /** The URNs given without wildcards. */
  get urns(): readonly string[] {
    return [...this.#urns];
  }
}

function globExpression(pattern: string): RegExp {
  const part = (text: string): string => text.split("*").map(quoted).join("[^:]*");
  return new RegExp(`^${pattern.split("**").map(part).join(".*")}$`);
}

function quoted(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}
