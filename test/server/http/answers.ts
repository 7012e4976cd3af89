import { expect } from "vitest";

/** The parts of an error response that tests compare. */
interface ErrorAnswer {
  readonly status: number;
  readonly body: unknown;
}

interface ErrorDetails {
  /** The code in the body. By default, the body must contain no code. */
  readonly code?: string;
  /** The sent value, for the report of a failure. */
  readonly label?: string;
}

/** The details of a 404 which the service itself, not its router, sent. */
export const NOT_FOUND: ErrorDetails = { code: "gatehouse_not_found" };

/**
 * Expects an error response whose body consists of a message and, with the option, a code.
 * @param message the whole message, or a pattern for it
 */
export function expectError(
  { status, body }: ErrorAnswer,
  expected: number,
  message: string | RegExp,
  { code, label }: ErrorDetails = {},
): void {
  const text = message instanceof RegExp ? expect.stringMatching(message) : message;
  expect([status, body], label).toEqual([expected, { message: text, ...(code !== undefined && { code }) }]);
}

/** Returns the sorted statuses of responses to concurrent requests. */
export async function statusesOf(
  answers: readonly Promise<{ readonly status: number }>[],
): Promise<readonly number[]> {
  return (await Promise.all(answers)).map(({ status }) => status).sort();
}
