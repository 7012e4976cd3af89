import type {
  Access,
  AccessDevice,
  AccessKey,
  AccessPolicy,
  AccessRule,
  EvaluatedLogins,
  NamespacePolicy,
  Outcome,
  Principal,
} from "@gatehouse-access/sdk/policy";
import type { NamespaceSettings } from "../../resources/namespace/resource.ts";
import type { Workload } from "../../resources/trustedWorkload.ts";
import type { ApiKey, Namespace } from "../../service/listings.ts";

/** A member of the namespace, as the service lists it. */
export type PolicyMember = Namespace["members"][number];

/** An API key of the namespace, as the service lists it: without its secret. */
export type PolicyApiKey = ApiKey;

/** A trusted workload of the namespace, as the service lists it. */
export type PolicyWorkload = Workload;

/** The settings of the namespace, with the names and defaults of the resource `Namespace`. */
export type PolicySettings = NamespaceSettings;

/** The subjects of a policy test: a namespace in its current state, or after a planned change. */
export interface PolicySubjects {
  /** The allowed logins at present, for `expect(access)`. For another time: `expect(access.at("2026-12-01T18:00Z"))`. */
  readonly access: TimedAccess;
  /** The accepted devices, the public keys and the firewall rules, for your own predicates. */
  readonly policy: NamespacePolicy;
  /**
   * The members and the open invitations. If the credential has no permission to read the members, a test that uses this
   * property fails.
   */
  readonly members: readonly PolicyMember[];
  /**
   * The API keys. If the credential has no permission to read the API keys, a test that uses this property fails.
   */
  readonly apiKeys: readonly PolicyApiKey[];
  /**
   * The trusted workloads: programs with a role. If the credential has no permission to read them, a test that uses this
   * property fails.
   */
  readonly workloads: readonly PolicyWorkload[];
  /**
   * The settings of the namespace, such as port forwarding and the recording of sessions. If the credential has no
   * permission to read the namespace, a test that uses this property fails.
   * @example expect(settings).toSatisfy(({ sshForwarding }) => sshForwarding.length === 0, "no port forwarding");
   */
  readonly settings: PolicySettings;
  /**
   * The login names and addresses for which `access` is evaluated. Each assertion adds the names and addresses of its
   * query.
   */
  readonly evaluated: EvaluatedLogins;
}

/** The allowed logins at a given time. Users who have not accepted their invitation are treated as members. */
export interface TimedAccess extends Access {
  /**
   * Returns the access at another time, at which keys, rules and memberships may have ended.
   * @param time RFC 3339 with an offset from UTC or Z, such as `2026-12-01T18:00Z`, or a `Date`
   * @example expect(access.at("2026-12-01T18:00Z")).not.toAllow({ key: "contractor-*" });
   * @throws TypeError for a date alone, or a time without an offset
   */
  at(time: string | Date): TimedAccess;
}

/** The function of a test. If the function returns a promise, the test ends when the promise settles. */
export type PolicyTestBody = (subjects: PolicySubjects) => void | Promise<void>;

/** One login that is allowed: the argument of `where`. */
export interface Decision {
  /** The public key of the login. A test that reads this property in identity mode fails. */
  readonly key: AccessKey;
  /** The user or service account that logs in. A test that reads this property in legacy mode fails. */
  readonly principal: Principal;
  /** The login name. `otheruser` represents all names that no pattern contains. */
  readonly login: string;
  /** The client's address. `192.0.2.1` and `2001:db8::1` represent all addresses that no rule contains. */
  readonly address: string;
  /** The device of the login. */
  readonly device: AccessDevice;
  /** The rule that allows the login; null if no rule matches, and in identity mode. */
  readonly rule: AccessRule | null;
  /** An access policy that allows the login; null in legacy mode. */
  readonly policy: AccessPolicy | null;
  /** The condition of the login: `allow` for none, `reauthentication`, `approval`, or `unknown`. */
  readonly outcome: Outcome;
  /** The time when the access ends, in RFC 3339; null if it does not end. */
  readonly until: string | null;
}

/** A query for devices. A device must match all given fields. */
export interface DeviceQuery {
  /** Name of the device; `*` matches any text, `?` matches one character. */
  readonly name?: string;
  /** A tag of the device. */
  readonly tag?: string;
  /** Id of the device. */
  readonly uid?: string;
}

/**
 * A query for logins. A login must match all given fields; `{}` matches all logins. An unknown field, an empty text or
 * the value `undefined` fails the test, so that a misspelled or unset value does not match all logins.
 */
export interface AccessQuery {
  /** Name of a public key, in which `*` matches any text and `?` matches one character; or its fingerprint. */
  readonly key?: string;
  /**
   * E-mail address of a user or name of a service account, in which `*` matches any text and `?` matches one character;
   * or its id. Only for namespaces in identity mode, which do not decide by `key`.
   */
  readonly user?: string;
  /** Login name; `*` matches any text, `?` matches one character. */
  readonly login?: string;
  /** The devices. */
  readonly device?: DeviceQuery;
  /** Client addresses: an address, a network like `10.0.0.0/8`, or a list of addresses and networks. */
  readonly from?: string | readonly string[];
  /**
   * Your own condition. The function is called for allowed logins that match all other fields, and must return `true` or
   * `false`, not a promise.
   */
  readonly where?: (decision: Decision) => boolean;
}

/** The matchers of an `expect` call, and in `not` their negations. */
export type Expectation<Matchers> = Matchers & {
  /** The negated matchers: `expect(access).not.toAllow(…)`. */
  readonly not: Matchers;
};

/** Matchers for any value. */
export interface ValueMatchers<Value> {
  /**
   * Asserts that the predicate returns `true`. An error of the predicate, or a result that is not a boolean, fails the
   * test.
   * @param predicate function of the value
   * @param what description of the predicate for the report
   * @example expect(members.length).toSatisfy((count) => count <= 20, "at most 20 members");
   */
  toSatisfy(predicate: (value: Value) => boolean, what?: string): void;
}

/** Matchers for lists. */
export interface ListMatchers<Item> extends ValueMatchers<readonly Item[]> {
  /**
   * Asserts that the predicate returns `true` for each element. The report lists the elements for which the predicate
   * returns `false`. An empty list passes with a warning.
   * @param predicate function of an element
   * @param what description of the predicate for the report
   * @example expect(policy.keys).toAllSatisfy(({ username }) => username.startsWith("^"), "patterns are anchored");
   */
  toAllSatisfy(predicate: (item: Item) => boolean, what?: string): void;
}

/** Matchers for `access`. */
export interface AccessMatchers extends ValueMatchers<Access> {
  /**
   * Asserts that at least one login that matches the query is allowed. A login that needs a re-authentication or the
   * approval of an SSH key is allowed. With `not`: asserts that no such login is
   * allowed. A query that matches no key or user, no device or no address proves nothing: the assertion fails, and its negation
   * passes with a warning.
   * @param query the logins
   * @example expect(access).not.toAllow({ key: "contractor-*", device: { tag: "prod" } });
   * @example expect(access).toAllow({ key: "deploy", login: "deploy", device: { name: "web-*" } });
   */
  toAllow(query: AccessQuery): void;
  /**
   * Asserts that every allowed login that matches the query needs a re-authentication of the user, or the approval of an
   * SSH key. The assertion fails if no login is allowed, and in legacy mode. If the credential cannot read whether a user
   * has an SSH key, the assertion and its negation fail.
   * @param query the logins
   * @example expect(access).toRequireApproval({ login: "root", device: { tag: "prod" } });
   */
  toRequireApproval(query: AccessQuery): void;
  /**
   * Asserts that no login that matches the query is allowed from an address outside of the networks. A query that matches
   * no key or no device passes with a warning.
   * @param networks an address, a network like `10.0.0.0/8`, or a list of addresses and networks
   * @param query the logins, without `from`; default: all logins
   * @example expect(access).onlyFrom("10.0.0.0/8", { device: { tag: "prod" } });
   * @example expect(access).onlyFrom(["10.0.0.0/8", "2001:db8::/32"]);
   */
  onlyFrom(networks: string | readonly string[], query?: Omit<AccessQuery, "from">): void;
  /**
   * Asserts that every allowed login that matches the query ends within a duration after the time of the access. The
   * assertion passes with a warning if no matching login is allowed.
   * @param duration minutes, hours or days: `30m`, `24h`, `14d`
   * @param query the logins; default: all logins
   * @example expect(access).toExpireWithin("24h", { login: "root", device: { tag: "prod" } });
   */
  toExpireWithin(duration: string, query?: AccessQuery): void;
}

/** Matchers for `members`. */
export interface MemberMatchers<Item> extends ListMatchers<Item> {
  /**
   * Asserts that exactly one member is an owner.
   * @example expect(members).exactlyOneOwner();
   */
  exactlyOneOwner(): void;
}

/** Matchers for `apiKeys`. */
export interface ApiKeyMatchers<Item> extends ListMatchers<Item> {
  /**
   * Asserts that all API keys have an expiry date. An empty list passes with a warning.
   * @param limit maximum lifetime of an API key after its creation, in days; default: no maximum
   * @example expect(apiKeys).everyKeyExpires({ withinDays: 90 });
   */
  everyKeyExpires(limit?: { readonly withinDays: number }): void;
}

/** The fields of a member that the matchers use. */
export type MemberFacts = Pick<PolicyMember, "email" | "role">;
/** The fields of an API key that the matchers use. */
export type ApiKeyFacts = Pick<PolicyApiKey, "name" | "expiresIn" | "createdAt">;
