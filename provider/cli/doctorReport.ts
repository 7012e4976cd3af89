import { setTimeout as wait } from "node:timers/promises";
import { errorText, fileFailure, GatehouseError, sentence } from "@gatehouse-access/sdk/errors";

/** The state of a check. A run can start if a check has the state `warning`, but not if it has the state `failed`. */
export type CheckState = "ok" | "warning" | "failed" | "not checked";

/** The result of checking one requirement of a run. */
export interface Check {
  /** Name of the check, such as `credential`. */
  readonly name: string;
  readonly state: CheckState;
  /** The facts that the check found, or the reason why the check did not run. Contains no secret. */
  readonly found: string;
  /** One sentence for the user. Every check with the state `warning` or `failed` has a remedy. */
  readonly remedy?: string;
  /** Further facts as sentences, such as the differences between the server and `gatehouse-server`. */
  readonly details?: readonly string[];
}

/** Output of `gatehouse doctor --json`: the checks of a run's requirements, each with its state. */
export interface Diagnosis {
  /** Version of this format. A breaking change increases the version (docs/reference/json-output.md). */
  readonly version: 1;
  /** False if any check has the state `failed`. */
  readonly ok: boolean;
  readonly checks: readonly Check[];
}

export type Finding = Omit<Check, "name">;

export const ok = (found: string): Finding => ({ state: "ok", found });

/** Returns the result of a check that found a problem. */
export const problem = (state: Exclude<CheckState, "ok">, found: string, remedy: string): Finding => {
  return { state, found, remedy: sentence(remedy) };
};

/** The error that a check throws if a value that it needs is missing. The state of the check is then `not checked`. */
export class NotChecked extends Error {}

/** Maximum duration of one check, in milliseconds. */
export const LIMIT = 10_000;

/**
 * Runs a check for at most {@link LIMIT}. If the check throws an error or times out, its state is `failed`.
 * @param remedy the remedy for errors that have no remedy of their own
 * @throws an error that is a bug
 */
export async function runCheck(remedy: string, work: () => Promise<Finding>): Promise<Finding> {
  const ended = new AbortController();
  const late = wait(LIMIT, problem("failed", `no result within ${LIMIT / 1000} s`, remedy), {
    signal: ended.signal,
  });
  try {
    return await Promise.race([work().catch((error: unknown) => failureOf(error, remedy)), late]);
  } finally {
    ended.abort();
  }
}

function failureOf(error: unknown, remedy: string): Finding {
  if (error instanceof NotChecked) return { state: "not checked", found: error.message };
  if (error instanceof GatehouseError) {
    const { code, field } = error;
    const found = errorText({ code, field, detail: error.detail.trim().replaceAll(/\n */g, " ") });
    return problem("failed", found, error.remedy ?? remedy);
  }
  const { syscall, path = "a file" } = error as NodeJS.ErrnoException;
  if (syscall === undefined) throw error;
  const { detail, remedy: ofFile } = fileFailure("read", path, error);
  return problem("failed", detail, ofFile ?? remedy);
}
