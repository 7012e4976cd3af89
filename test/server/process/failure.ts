import { expect } from "vitest";
import type { CommandResult } from "../../support/command.ts";

/**
 * Expects that a command failed with exit code 1, and printed only errors.
 * @param message a part of the errors, or a pattern for all errors
 */
export function expectFailure({ code, stdout, stderr }: CommandResult, message: string | RegExp): void {
  expect([code, stdout]).toEqual([1, ""]);
  if (typeof message === "string") expect(stderr).toContain(message);
  else expect(stderr).toMatch(message);
}
