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

/** A member of the namespace, in the form that the service lists. */
export type PolicyMember = Namespace["members"][number];

/** An API key of the namespace, in the form that the service lists. The secret is omitted. */
export type PolicyApiKey = ApiKey;

/** A trusted workload of the namespace, in the form that the service lists. */
export type PolicyWorkload = Workload;

/** The settings of the namespace, with the names and defaults of the resource `Namespace`. */
export type PolicySettings = NamespaceSettings;

/** The argument of a policy test: a namespace in its current state, or after a planned change. */
export interface PolicySubjects {
  /**
   * The allowed logins at the current time. Pass this property to `expect`. For a different time, use
   * `expect(access.at("2026-12-01T18:00Z"))`.
   */
  readonly access: TimedAccess;
  /** The accepted devices, the public keys and the firewall rules, for custom predicates. */
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
   * The trusted workloads, which are programs with a role. If the credential has no permission to read the trusted
   * workloads, a test that uses this property fails.
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
   * Returns the access at a different time. Keys, rules and memberships can have expired at that time.
   * @param time RFC 3339 with an offset from UTC or Z, such as `2026-12-01T18:00Z`, or a `Date`
   * @example expect(access.at("2026-12-01T18:00Z")).not.toAllow({ key: "contractor-*" });
   * @throws TypeError for a date alone, or a time without an offset
   */
  at(time: string | Date): TimedAccess;
}

/**
 * The function of a test. If the function returns a promise, the test ends when the promise is resolved or rejected.
 */
export type PolicyTestBody = (subjects: PolicySubjects) => void | Promise<void>;

/** An allowed login. The function `where` of a query receives it as its argument. */
export interface Decision {
  /** The public key of the login. In identity mode, a test that reads this property fails. */
  readonly key: AccessKey;
  /** The user or service account that logs in. In legacy mode, a test that reads this property fails. */
  readonly principal: Principal;
  /** The login name. `otheruser` represents all names that no pattern contains. */
  readonly login: string;
  /** The client's address. `192.0.2.1` and `2001:db8::1` represent all addresses that no rule contains. */
  readonly address: string;
  /** The device of the login. */
  readonly device: AccessDevice;
  /** The rule that allows the login. Null in identity mode, and if no rule matches. */
  readonly rule: AccessRule | null;
  /** An access policy that allows the login; null in legacy mode. */
  readonly policy: AccessPolicy | null;
  /**
   * The condition of the login: `reauthentication`, `approval` or `unknown`. `allow` if the login has no condition.
   */
  readonly outcome: Outcome;
  /** The expiry time of the access, in RFC 3339; null if the access does not expire. */
  readonly until: string | null;
}

/** A query for devices. It matches devices that match all given fields. */
export interface DeviceQuery {
  /** Name of the device. `*` matches any string, and `?` matches one character. */
  readonly name?: string;
  /** A tag of the device. */
  readonly tag?: string;
  /** Id of the device. */
  readonly uid?: string;
}

/**
 * A query for logins. It matches logins that match all given fields, so `{}` matches all logins. An unknown field, an
 * empty string or the value `undefined` fails the test, so that a misspelled or unset value does not match all logins.
 */
export interface AccessQuery {
  /** Fingerprint or name of a public key. In a name, `*` matches any string, and `?` matches one character. */
  readonly key?: string;
  /**
   * E-mail address of a user, name of a service account, or id of either. In an address or name, `*` matches any
   * string, and `?` matches one character. Only for namespaces in identity mode, in which public keys have no effect.
   */
  readonly user?: string;
  /** Login name. `*` matches any string, and `?` matches one character. */
  readonly login?: string;
  /** The devices. */
  readonly device?: DeviceQuery;
  /** Client addresses: an address, a network such as `10.0.0.0/8`, or a list of addresses and networks. */
  readonly from?: string | readonly string[];
  /**
   * A custom condition. The function is called for each allowed login that matches all other fields. It must return
   * `true` or `false`, not a promise.
   */
  readonly where?: (decision: Decision) => boolean;
}

/** The matchers of an `expect` call. The property `not` contains the negated matchers. */
export type Expectation<Matchers> = Matchers & {
  /** The negated matchers: `expect(access).not.toAllow(…)`. */
  readonly not: Matchers;
};

/** Matchers for any value. */
export interface ValueMatchers<Value> {
  /**
   * Asserts that the predicate returns `true`. The test fails if the predicate throws an error or returns a value that
   * is not a boolean.
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
   * approval of an SSH key is treated as allowed. With `not`, asserts that no matching login is allowed. A query that
   * matches no subject, no device or no address proves nothing: the assertion fails, and the negated assertion passes
   * with a warning.
   * @param query the logins
   * @example expect(access).not.toAllow({ key: "contractor-*", device: { tag: "prod" } });
   * @example expect(access).toAllow({ key: "deploy", login: "deploy", device: { name: "web-*" } });
   */
  toAllow(query: AccessQuery): void;
  /**
   * Asserts that every allowed login that matches the query needs a re-authentication of the user, or the approval of
   * an SSH key. The assertion fails in legacy mode, and if no matching login is allowed. If the credential cannot read
   * whether a user has an SSH key, both the assertion and the negated assertion fail.
   * @param query the logins
   * @example expect(access).toRequireApproval({ login: "root", device: { tag: "prod" } });
   */
  toRequireApproval(query: AccessQuery): void;
  /**
   * Asserts that no login that matches the query is allowed from an address outside of the networks. A query that
   * matches no key, user or device passes with a warning.
   * @param networks an address, a network such as `10.0.0.0/8`, or a list of addresses and networks
   * @param query the logins, without `from`; default: all logins
   * @example expect(access).onlyFrom("10.0.0.0/8", { device: { tag: "prod" } });
   * @example expect(access).onlyFrom(["10.0.0.0/8", "2001:db8::/32"]);
   */
  onlyFrom(networks: string | readonly string[], query?: Omit<AccessQuery, "from">): void;
  /**
   * Asserts that every allowed login that matches the query expires within a duration after the time for which `access`
   * is evaluated. The assertion passes with a warning if no matching login is allowed.
   * @param duration minutes, hours or days: `30m`, `24h`, `14d`
   * @param query the logins; default: all logins
   * @example expect(access).toExpireWithin("24h", { login: "root", device: { tag: "prod" } });
   */
  toExpireWithin(duration: string, query?: AccessQuery): void;
}

/** Matchers for `members`. */
export interface MemberMatchers<Item> extends ListMatchers<Item> {
  /**
   * Asserts that exactly one member has the role `owner`.
   * @example expect(members).exactlyOneOwner();
   */
  exactlyOneOwner(): void;
}

/** Matchers for `apiKeys`. */
export interface ApiKeyMatchers<Item> extends ListMatchers<Item> {
  /**
   * Asserts that all API keys have an expiry date. An empty list passes with a warning.
   * @param limit maximum lifetime of an API key from its creation, in days; default: no maximum
   * @example expect(apiKeys).everyKeyExpires({ withinDays: 90 });
   */
  everyKeyExpires(limit?: { readonly withinDays: number }): void;
}

/** The fields of a member that the matchers use. */
export type MemberFacts = Pick<PolicyMember, "email" | "role">;
/** The fields of an API key that the matchers use. */
export type ApiKeyFacts = Pick<PolicyApiKey, "name" | "expiresIn" | "createdAt">;
