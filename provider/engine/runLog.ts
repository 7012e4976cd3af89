import { type Adopted, readAdoptionNotice } from "../engineMarks.ts";
import { STATE_IDENTITY_TYPE, typeName } from "../urn.ts";
import type { Diagnostic, EngineEvent, Step, StepOp, Writable } from "./model.ts";
import { isSecret, type Value } from "./value.ts";

/** A step, or one of the objects that it is about. */
type Worked = Pick<Step, "urn" | "type" | "name"> & Partial<Pick<Writable<Step>, "id" | "op">>;

/** Collects what a run does, and tells of it while it happens. Secrets that it knows never pass through it. */
export class RunLog {
  readonly steps: Writable<Step>[] = [];
  readonly diagnostics: Diagnostic[] = [];
  readonly #emit: (event: EngineEvent) => void;
  readonly #secrets = new Set<string>();
  /** The same secrets, longest first; sorted again once there are more. */
  #ordered: string[] = [];
  /** Adopted objects and finished creations: a run learns of them in either order. */
  readonly #adopted = new Set<string>();
  readonly #created = new Map<string, Worked>();

  constructor(emit: (event: EngineEvent) => void) {
    this.#emit = emit;
  }

  /** Tells of an event, unless it is one of a resource that people are not told of. */
  emit(event: EngineEvent): void {
    const isTold = !("type" in event && event.type === STATE_IDENTITY_TYPE) || "error" in event;
    if (isTold) this.#emit(event);
  }

  /** Masks the secret texts in a value from here on. Very short ones are not masked: that would happen by accident. */
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

  /** The text with known secrets masked; of those that begin alike, the longest one. */
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

  /** Tells that work on a resource begins; the returned function tells its end. */
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

  #made(step: Worked): StepOp {
    const key = objectKey({ type: typeName(step.type), name: step.name, id: this.mask(step.id ?? "") });
    this.#created.set(key, step);
    // The provider may have reported that it adopted an object.
    if (!this.#adopted.has(key)) return "create";
    step.op = "import";
    return step.op;
  }

  step(step: Writable<Step>): void {
    this.steps.push(step);
  }

  /** Takes back a step that was planned and, because the run stopped, not done. */
  drop(step: Writable<Step>): void {
    const at = this.steps.indexOf(step);
    if (at >= 0) this.steps.splice(at, 1);
  }

  fail(step: Writable<Step>, error: Error): void {
    step.error = this.mask(error.message);
    this.diagnostic({ severity: "error", message: error.message, urn: step.urn });
  }
}

const objectKey = ({ type, name, id }: Adopted) => [type, name, id].join("\n");
