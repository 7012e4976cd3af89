import { inspect } from "node:util";

/**
 * What a predicate says.
 * @throws TypeError when it is neither true nor false: a promise, for one, would always count as true
 */
export function answerOf(predicate: string, answer: unknown): boolean {
  if (typeof answer === "boolean") return answer;
  throw new TypeError(`${predicate} must answer true or false, and at once; it answered ${inspect(answer)}`);
}
