import { type Adopted, readAdoptionNotice } from "../adoptionNotice.ts";
import type { Diagnostic, EngineEvent, Step, StepOp } from "./model.ts";
import { STATE_IDENTITY_TYPE, typeName } from "./urn.ts";
import { isSecret, type Value } from "./value.ts";

/** What there is work on: a step, or an object of one. */
type Worked = Pick<Step, "urn" | "type" | "name"> & Partial<Pick<Step, "id" | "op">>;

/** Collects what a run did, and tells it on while it happens. Known secrets never pass through it. */
export class RunLog {
  readonly steps: Step[] = [];
  readonly diagnostics: Diagnostic[] = [];
  readonly #emit: (event: EngineEvent) => void;
  readonly #secrets = new Set<string>();
  /** The same, longest first; made anew once there are more. */
  #ordered: string[] = [];
  /** What providers said they took over, and the creations that ended: an engine learns of them in either order. */
  readonly #adopted = new Set<string>();
  readonly #created = new Map<string, Worked>();

  constructor(emit: (event: EngineEvent) => void) {
    this.#emit = emit;
  }

  emit(event: EngineEvent): void {
    const isTold = !("type" in event && event.type === STATE_IDENTITY_TYPE) || "error" in event;
    if (isTold) this.#emit(event);
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
    const adopted = readAdoptionNotice(masked.message);
    if (adopted) this.#adopt(objectKey(adopted));
    this.emit({ kind: "diagnostic", diagnostic: masked });
  }

  #adopt(key: string): void {
    this.#adopted.add(key);
    const step = this.#created.get(key);
    if (step) step.op = "import";
  }

  /** Reports that work on a resource begins; the returned function reports its end. */
  start(op: StepOp | "refresh", step: Worked): (error?: string) => void {
    const { urn, type, name } = step;
    const since = Date.now();
    this.emit({ kind: "started", op, urn, type, name });
    return (error) => {
      const ms = Date.now() - since;
      const done = op === "create" && error === undefined ? this.#made(step) : op;
      const what = { kind: "finished", op: done, urn, type, name, ms } as const;
      this.emit(error === undefined ? what : { ...what, error: this.mask(error) });
    };
  }

  /** What a creation that succeeded was in truth. */
  #made(step: Worked): StepOp {
    const key = objectKey({ type: typeName(step.type), name: step.name, id: this.mask(step.id ?? "") });
    this.#created.set(key, step);
    if (!this.#adopted.has(key)) return "create";
    step.op = "import";
    return step.op;
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

const objectKey = ({ type, name, id }: Adopted) => [type, name, id].join("\n");
