import { stripVTControlCharacters } from "node:util";
import { maskSecrets } from "@gatehouse-access/sdk/errors";
import { type Adopted, readAdoptionNotice } from "../engineMarks.ts";
import { STATE_IDENTITY_TYPE, typeName } from "../urn.ts";
import type { Diagnostic, EngineEvent, Step, StepOp, Writable } from "./model.ts";
import { isSecret, type Value } from "./value.ts";

/** The resource of an operation, with the id of its object. A replacement works on an old object and a new object. */
type WorkItem = Pick<Step, "urn" | "type" | "name"> & Partial<Pick<Writable<Step>, "id" | "op">>;

/** Collects the steps and messages of a run, and reports them as events. Masks all known secrets in them. */
export class RunLog {
  readonly steps: Writable<Step>[] = [];
  readonly diagnostics: Diagnostic[] = [];
  readonly #emit: (event: EngineEvent) => void;
  readonly #secrets = new Set<string>();
  /**
   * Keys of existing objects that the provider adopted. The provider can report an adoption before or after the create
   * operation ends.
   */
  readonly #adopted = new Set<string>();
  /** Steps of finished create operations, by the key of the object. */
  readonly #created = new Map<string, WorkItem>();

  constructor(emit: (event: EngineEvent) => void) {
    this.#emit = emit;
  }

  /** Reports an event, unless the event belongs to a resource that commands do not show. */
  emit(event: EngineEvent): void {
    const isVisible = !("type" in event && event.type === STATE_IDENTITY_TYPE) || "error" in event;
    if (isVisible) this.#emit(event);
  }

  /**
   * Records the secret strings in a value, so that later messages mask them. Ignores strings with fewer than 5
   * characters, since they could also be part of other words.
   */
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

  /** Masks all known secrets in a string. */
  mask(text: string): string {
    return maskSecrets(text, [...this.#secrets]);
  }

  diagnostic(diagnostic: Diagnostic): void {
    // Programs and the SDK add terminal colors to their messages.
    const masked = { ...diagnostic, message: this.mask(stripVTControlCharacters(diagnostic.message)) };
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

  /** Reports the start of an operation on a resource. The returned function reports the end of the operation. */
  start(op: StepOp | "refresh", step: WorkItem): (error?: string) => void {
    const { urn, type, name } = step;
    const since = Date.now();
    this.emit({ kind: "started", op, urn, type, name });
    return (error) => {
      const ms = Date.now() - since;
      const done = op === "create" && error === undefined ? this.#finishCreation(step) : op;
      const event = { kind: "finished", op: done, urn, type, name, ms } as const;
      this.emit(error === undefined ? event : { ...event, error: this.mask(error) });
    };
  }

  #finishCreation(step: WorkItem): StepOp {
    const key = objectKey({ type: typeName(step.type), name: step.name, id: this.mask(step.id ?? "") });
    this.#created.set(key, step);
    // The provider may have already reported that it adopted the object.
    if (!this.#adopted.has(key)) return "create";
    step.op = "import";
    return step.op;
  }

  step(step: Writable<Step>): void {
    this.steps.push(step);
  }

  /** Removes a planned step that was not executed because the run stopped. */
  drop(step: Writable<Step>): void {
    const at = this.steps.indexOf(step);
    if (at >= 0) this.steps.splice(at, 1);
  }

  /** Reports the error of a step. For an AggregateError, reports each of its errors. */
  fail(step: Writable<Step>, error: Error): void {
    step.error = this.mask(error.message);
    const causes: readonly Error[] = error instanceof AggregateError ? error.errors : [error];
    for (const { message } of causes) this.diagnostic({ severity: "error", message, urn: step.urn });
  }
}

const objectKey = ({ type, name, id }: Adopted) => [type, name, id].join("\n");
