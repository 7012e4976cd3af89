import type { AccessDomain } from "@gatehouse-access/sdk/policy";

/** A login that is allowed and must not be, or one that is refused and must not be. */
export interface PolicyCounterexample {
  readonly login: string;
  readonly address: string;
  readonly device: { readonly uid: string; readonly name: string };
  readonly key: { readonly fingerprint: string; readonly name: string };
  /** The rule that decides; null where none matches, which allows. */
  readonly rule: { readonly id: string; readonly action: "allow" | "deny"; readonly priority: number } | null;
  /** What refuses it: the key's login names, the key's devices, or the rule. Left out where it is allowed. */
  readonly refusedBy?: "login" | "device" | "rule";
}

/** The logins that an assertion about access was judged by. */
export interface LookedAt extends AccessDomain {
  /** How many. */
  readonly keys: number;
  /** How many. */
  readonly devices: number;
}

/** Why a test failed. */
export interface PolicyFailure {
  /** The assertion as it is written. Left out where the test itself threw an error, or its file cannot be loaded. */
  readonly assertion?: string;
  readonly message: string;
  /** A few of the cases. */
  readonly counterexamples: readonly PolicyCounterexample[];
  /** How many cases there are. A case is a key, a login name, a device and the rule that decides, from any addresses. */
  readonly cases: number;
  readonly lookedAt?: LookedAt;
  /** In the test's file. */
  readonly line: number | undefined;
}

/** A sign that a test which does not fail says nothing. */
export interface PolicyWarning {
  readonly assertion?: string;
  readonly message: string;
  readonly line: number | undefined;
}

/** What came of one test. */
export interface PolicyTestResult {
  /** The test's name; for a file that cannot be loaded, the file. */
  readonly name: string;
  /** Relative to the program's folder, with forward slashes. */
  readonly file: string;
  /** Where it is declared. */
  readonly line: number | undefined;
  readonly ok: boolean;
  readonly failures: readonly PolicyFailure[];
  readonly warnings: readonly PolicyWarning[];
  readonly durationMs: number;
}

/** What came of all tests of a folder. */
export interface PolicyTestReport {
  /** True too where there is no test. */
  readonly ok: boolean;
  readonly tests: readonly PolicyTestResult[];
}
