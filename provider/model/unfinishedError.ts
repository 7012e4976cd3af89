import { engineText } from "../resourceError.ts";
import type { Values } from "../values.ts";

/**
 * Thrown if a step of a create failed after the object was created. The engine keeps the id and state of the object,
 * and the next run updates the object instead of creating a new one. If no object was created, the error of the request
 * is thrown instead.
 */
export class UnfinishedError extends Error {
  override readonly name = "UnfinishedError";
  readonly id: string;
  readonly state: Values;
  readonly reason: string;
  /** True if the object existed before the run and was adopted. */
  readonly existedBefore: boolean;

  constructor(id: string, state: Values, cause: unknown, existedBefore = false) {
    super("created, but incomplete", { cause });
    this.existedBefore = existedBefore;
    this.reason = engineText(cause);
    this.id = id;
    this.state = state;
  }
}
