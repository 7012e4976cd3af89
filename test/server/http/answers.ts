import { expect } from "vitest";

/** The parts of an error response that tests compare. */
interface ErrorAnswer {
  readonly status: number;
  readonly body: { readonly code?: unknown };
}

/**
 * Expects an error response whose body has a message, and at most a code besides it.
 * @param message the whole message, or a pattern for it
 * @param label what was sent, for the report of a failure
 */
export function expectError(
  { status, body }: ErrorAnswer,
  expected: number,
  message: string | RegExp,
  label?: string,
): void {
  const text = message instanceof RegExp ? expect.stringMatching(message) : message;
  const { code: _, ...rest } = body;
  expect([status, rest], label).toEqual([expected, { message: text }]);
}

/** Returns the sorted statuses of responses to concurrent requests. */
export async function statusesOf(
  answers: readonly Promise<{ readonly status: number }>[],
): Promise<readonly number[]> {
  return (await Promise.all(answers)).map(({ status }) => status).sort();
}
