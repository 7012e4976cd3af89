import type {
  AccessPolicy,
  EvaluatedLogins,
  KeyLapse,
  Outcome,
  Principal,
} from "@gatehouse-access/sdk/policy";

/**
 * A login that contradicts an assertion: the login is allowed but must be refused, or it is refused but must be
 * allowed.
 */
export interface PolicyCounterexample {
  readonly login: string;
  readonly address: string;
  readonly device: { readonly uid: string; readonly name: string };
  /** The public key; omitted in identity mode. */
  readonly key?: { readonly fingerprint: string; readonly name: string };
  /** The user or service account. Present only in identity mode. */
  readonly principal?: Pick<Principal, "id" | "name" | "kind">;
  /** The rule that allows or denies the login. Null in identity mode, and if no rule matches. */
  readonly rule: { readonly id: string; readonly action: "allow" | "deny"; readonly priority: number } | null;
  /** An access policy that allows or denies the login. Present only in identity mode. */
  readonly policy?: Pick<AccessPolicy, "id" | "name" | "action">;
  /** The outcome of an allowed login. Present only in identity mode. */
  readonly outcome?: Outcome;
  /**
   * The expiry time of the access, in RFC 3339; null if the access does not expire. Omitted if the login is refused.
   */
  readonly until?: string | null;
  /**
   * The reason for a refusal. In legacy mode, the reason is a property of the key (its login names, devices, type,
   * expiry or owner) or the firewall rule. In identity mode, the reason is that the user has no usable SSH key, that a
   * policy denies the login, or that no policy allows it. Omitted if the login is allowed.
   */
  readonly deniedBy?: "login" | "device" | "rule" | "key" | KeyLapse | "policy" | "policies" | "default";
}

/**
 * The evaluated login names and addresses of an assertion about access, and the numbers of evaluated keys, principals
 * and devices.
 */
export interface EvaluatedCases extends EvaluatedLogins {
  /** Number of evaluated keys: 0 in identity mode. */
  readonly keys: number;
  /** Number of evaluated users and service accounts. Present only in identity mode. */
  readonly principals?: number;
  /** Number of evaluated devices. */
  readonly devices: number;
}

/** A failed assertion of a test, or an error. */
export interface PolicyFailure {
  /** The assertion as code. Omitted if the test itself threw an error, or if the file cannot be loaded. */
  readonly assertion?: string;
  readonly message: string;
  /** Examples of cases that contradict the assertion. */
  readonly counterexamples: readonly PolicyCounterexample[];
  /**
   * Number of cases that contradict the assertion. A case is a combination of key, login name, device, and the rule
   * that allows or denies the login.
   */
  readonly cases: number;
  readonly evaluated?: EvaluatedCases;
  /** Line number of the assertion or of the error in the policy file. */
  readonly line: number | undefined;
}

/** A warning that a passing test may prove nothing, for example because a query matches no key. */
export interface PolicyWarning {
  readonly assertion?: string;
  readonly message: string;
  readonly line: number | undefined;
}

/** A namespace of the service. */
export interface NamespaceName {
  /** Id of the namespace. */
  readonly tenant: string;
  /** Name of the namespace. If the credential may not read the name, the id of the namespace. */
  readonly name: string;
}

/** A namespace that a policy file declares as untested. */
export interface UntestedNamespace {
  /** Name or id of the namespace, as declared. */
  readonly namespace: string;
  readonly reason: string;
  /** Path of the policy file relative to the project directory, with forward slashes. */
  readonly file: string;
  /** Line of the declaration. */
  readonly line: number | undefined;
}

/** The result of one test in one namespace. */
export interface PolicyTestResult {
  /** The test's name, or the file name if the file cannot be loaded. */
  readonly name: string;
  /** Path relative to the project directory, with forward slashes. */
  readonly file: string;
  /** Line of the test's declaration. */
  readonly line: number | undefined;
  /**
   * The namespace that the test checked. Omitted for a file that cannot be loaded. Also omitted in a review, which has
   * a separate list of tests for each namespace.
   */
  readonly namespace?: NamespaceName;
  readonly ok: boolean;
  readonly failures: readonly PolicyFailure[];
  readonly warnings: readonly PolicyWarning[];
  readonly durationMs: number;
}

/** The results of all tests of a program. */
export interface PolicyTestReport {
  /** True if no test failed. A run without tests has no failed test. */
  readonly ok: boolean;
  readonly tests: readonly PolicyTestResult[];
}
