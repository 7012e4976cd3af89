import { isDeepStrictEqual } from "node:util";
import { EngineError } from "../../errors.ts";
import { type FieldChange, holds, type Plan, type Shown, type Step } from "../../model.ts";
import { STATE_IDENTITY_TYPE } from "../../urn.ts";

/** A plan that a run may not depart from: a program may declare something else while it runs than in its preview. */
export class HeldPlan {
  readonly #steps = new Map<string, Step>();

  constructor({ steps }: Plan) {
    // An old object that a replacement has not deleted yet has the same URN as the new one.
    for (const step of steps) if (step.op !== "delete") this.#steps.set(step.urn, step);
    for (const step of steps) if (!this.#steps.has(step.urn)) this.#steps.set(step.urn, step);
  }

  /**
   * A value that the plan did not know yet may be any.
   * @throws EngineError (`not_planned`) where the step is another one than was planned
   */
  require(step: Step): void {
    if (step.type === STATE_IDENTITY_TYPE) return;
    const planned = this.#steps.get(step.urn);
    if (!planned) throw misfit(`${step.op} is not in the plan`);
    const isOpen = planned.fields.some((field) => hasUnknown(field.new));
    if (planned.op !== step.op && !(isOpen && (step.op === "same" || step.op === "update"))) {
      throw misfit(`the plan has ${planned.op}, and it would be ${step.op}`);
    }
    const changed = new Set(step.fields.map(({ path }) => path));
    const left = planned.fields.find(({ path }) => !changed.has(path));
    if (left && !isOpen) throw notAs(left);
    const meant = new Map(planned.fields.map((field) => [field.path, field]));
    for (const field of step.fields) {
      const other = meant.get(field.path) ?? unknownAbove(planned.fields, field.path);
      if (!other || !(hasUnknown(other.new) || isDeepStrictEqual(other.new, field.new))) throw notAs(field);
    }
  }

  /** @throws EngineError (`not_planned`) where the plan keeps the resource */
  requireDeletion(urn: string): void {
    const planned = this.#steps.get(urn);
    if (planned && planned.op !== "delete" && planned.op !== "replace") {
      throw misfit(`the plan has ${planned.op}, and it would be deleted`);
    }
  }
}

const misfit = (what: string) =>
  new EngineError("not_planned", `${what}: the program declares something else than in its preview`);

const notAs = ({ path }: FieldChange) => misfit(`${path} is not as planned`);

/** The planned change of an object, not known yet, that a field is part of. */
const unknownAbove = (fields: readonly FieldChange[], path: string) =>
  fields.find((field) => path.startsWith(`${field.path}.`) && hasUnknown(field.new));

const hasUnknown = (value: Shown | undefined) => holds(value, "[unknown]");
