import { loading, stackAbove } from "./running.ts";
import type { PolicyTestBody } from "./subjects.ts";

/** Seconds that a test may take where it says nothing else. */
export const TIME_LIMIT = 10;

/** What a test may say about itself. */
export interface PolicyTestOptions {
  /**
   * Seconds after which a test that waits for something has failed.
   * @default {@link TIME_LIMIT}
   */
  readonly timeLimit?: number;
}

/**
 * Declares what must hold about access, in a file `*.policy.ts` beside Pulumi.yaml.
 * @example
 * policyTest("contractors stay out of production", ({ access }) => {
 *   expect(access).not.toAllow({ key: "contractor-*", device: { tag: "prod" } });
 * });
 * @throws Error outside of a policy file that `gatehouse` loads
 * @throws TypeError when the name is empty, the body no function, or the time limit not positive
 */
export function policyTest(name: string, body: PolicyTestBody, options: PolicyTestOptions = {}): void {
  const { timeLimit = TIME_LIMIT } = options;
  if (typeof name !== "string" || name.trim() === "") throw new TypeError("policyTest(): needs a name");
  if (typeof body !== "function") throw new TypeError(`policyTest("${name}"): needs a function to run`);
  if (!(timeLimit > 0)) {
    throw new TypeError(`policyTest("${name}"): timeLimit must be a positive number of seconds`);
  }
  if (!loading.declare) {
    throw new Error(
      `policyTest("${name}"): declare tests while their file is loaded by gatehouse, for example by: gatehouse test`,
    );
  }
  loading.declare({ name, body, timeLimit, stack: stackAbove(policyTest) });
}
