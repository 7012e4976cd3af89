import type { Diagnostic, EngineEvent, Step, StepOp } from "./model.ts";
import { isSecret, type Value } from "./value.ts";

/** Collects what a run did, and tells it on while it happens. Known secrets never pass through it. */
export class RunLog {
  readonly steps: Step[] = [];
  readonly diagnostics: Diagnostic[] = [];
  readonly #emit: (event: EngineEvent) => void;
  readonly #secrets = new Set<string>();
  /** The same, longest first; made anew once there are more. */
  #ordered: string[] = [];

  constructor(emit: (event: EngineEvent) => void) {
    this.#emit = emit;
  }

  emit(event: EngineEvent): void {
    this.#emit(event);
  }

  /** Texts in here are masked in every later message. Very short ones are not: they would mask by accident. */
  hide(value: Value | undefined, inSecret = false): void {
    if (value === undefined || value === null) return;
    if (typeof value === "string") {
      if (inSecret && value.length >= 5) this.#secrets.add(value);
    } else if (Array.isArray(value)) {
      for (const item of value) this.hide(item, inSecret);
    } else if (typeof value === "object") {
      const hidden = inSecret || isSecret(value);
      for (const item of Object.values(isSecret(value) ? { value: value.value ?? null } : value)) {
        this.hide(item, hidden);
      }
    }
  }

  /** Masks known secrets, of those that begin alike the longest one. */
  mask(text: string): string {
    if (this.#ordered.length < this.#secrets.size) {
      this.#ordered = [...this.#secrets].sort((a, b) => b.length - a.length);
    }
    return this.#ordered.reduce((masked, hidden) => masked.replaceAll(hidden, "[secret]"), text);
  }

  diagnostic(diagnostic: Diagnostic): void {
    const masked = { ...diagnostic, message: this.mask(diagnostic.message) };
    this.diagnostics.push(masked);
    this.#emit({ kind: "diagnostic", diagnostic: masked });
  }

  /** Reports that work on a resource begins; the returned function reports its end. */
  start(op: StepOp | "refresh", of: { urn: string; type: string; name: string }): (error?: string) => void {
    const what = { op, urn: of.urn, type: of.type, name: of.name };
    const since = Date.now();
    this.#emit({ kind: "started", ...what });
    return (error) => {
      const ms = Date.now() - since;
      if (error === undefined) this.#emit({ kind: "finished", ...what, ms });
      else this.#emit({ kind: "finished", ...what, ms, error: this.mask(error) });
    };
  }

  /** Adds a step to the result. */
  step(step: Step): Step {
    this.steps.push(step);
    return step;
  }

  /** Takes back a step that was planned and, because the run stopped, not done. */
  drop(step: Step): void {
    const at = this.steps.indexOf(step);
    if (at >= 0) this.steps.splice(at, 1);
  }

  /** Marks a step as failed, and says so. */
  fail(step: Step, error: Error): void {
    step.error = this.mask(error.message);
    this.diagnostic({ severity: "error", message: error.message, urn: step.urn });
  }
}
