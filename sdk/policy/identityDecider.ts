import { TypedFastBitSet } from "typedfastbitset";
import {
  Access,
  type Decider,
  type DeciderNouns,
  type DecidingObject,
  type Decision,
  type Evaluation,
  type MentionedLogins,
  type Reason,
  type RuleSet,
  type Share,
  type SingleLogin,
  type Verdict,
} from "./decider.ts";
import { type DeviceSet, NO_DEVICES, unionOf } from "./deviceSets.ts";
import { latest } from "./expiry.ts";
import {
  type AccessPolicy,
  explainIdentity,
  hasLogin,
  type IdentityRules,
  inPolicyOrder,
  isLive,
  isSubject,
  keyStateOf,
  type Outcome,
  outcomeFor,
  type Principal,
  sourceTest,
} from "./identity.ts";
import type { NamespacePolicy, SubjectFacts } from "./namespacePolicy.ts";

export const IDENTITY_NOUNS: DeciderNouns = {
  subject: ["user or service account", "users and service accounts"],
  subjectInShort: ["principal", "principals"],
  selector: "user",
  object: ["access policy", "access policies"],
  objectInShort: "policy",
  loginSources: "policies",
  basis: "access policies",
};

/** Evaluates logins by access policies. SSH keys only identify a principal. */
export class IdentityDecider implements Decider<Principal> {
  readonly mode = "identity";
  readonly nouns = IDENTITY_NOUNS;
  readonly defaultDenial = "no access policy allows it";
  readonly #policy: NamespacePolicy;
  readonly #identity: IdentityRules;

  constructor(policy: NamespacePolicy, identity: IdentityRules) {
    this.#policy = policy;
    this.#identity = identity;
  }

  get subjects(): readonly Principal[] {
    return this.#identity.principals;
  }

  get policies(): readonly AccessPolicy[] {
    return this.#identity.policies;
  }

  get objects(): readonly DecidingObject[] {
    return this.policies.map(objectOf);
  }

  get counts() {
    return { principals: this.subjects.length, policies: this.policies.length };
  }

  get deniesEverything(): boolean {
    return this.policies.length === 0;
  }

  get ends(): readonly string[] {
    const keys = this.subjects.flatMap((principal) => principal.keys ?? []);
    return keys.flatMap(({ expiresAt }) => expiresAt ?? []);
  }

  mentioned(): MentionedLogins {
    return {
      logins: this.policies.flatMap(({ logins }) => logins.filter((login) => login !== "*")),
      loginPatterns: [],
      addressPatterns: [],
      networks: this.policies.flatMap(({ sourceIps }) => sourceIps),
    };
  }

  withSubjects(isKept: (subject: Pick<SubjectFacts, "id" | "name">) => boolean): NamespacePolicy {
    return { ...this.#policy, identity: { ...this.#identity, principals: this.subjects.filter(isKept) } };
  }

  decide({ id }: Principal, login: SingleLogin): Decision {
    const policy = { devices: this.#policy.devices, identity: this.#identity };
    const { deniedBy, considered } = explainIdentity(policy, { subject: id, ...login });
    return {
      deniedBy,
      rule: null,
      policy: considered.find(({ role }) => role === "denies")?.policy ?? null,
    };
  }

  exampleFor(_: Principal, [login = ""]: readonly string[]) {
    const [device] = this.#policy.devices;
    return device && { login, device };
  }

  changedAdmission(_: Principal, { kind }: Principal): string {
    return `the SSH keys or the role of the ${kind} change`;
  }

  access(evaluation: Evaluation): Access<Principal> {
    return new IdentityAccess(this, this.#policy, evaluation);
  }
}

const objectOf = (policy: AccessPolicy): DecidingObject => ({
  kind: "accessPolicy",
  noun: "access policy",
  id: policy.id,
  name: policy.name,
  filter: policy.filter,
  details: policy.action,
  effect: policy.action,
  givesAccess: policy.action === "allow",
  patterns: [{ field: "filter.hostname", subject: "device", pattern: policy.filter.hostname ?? "" }],
  reauthentication: reauthenticationText(policy),
  appliesTo: (principal: Principal) => isSubject(policy, principal),
});

function reauthenticationText({ action, requireReauth, reauthPeriod }: AccessPolicy): string {
  if (action === "deny" || !requireReauth) return "not needed";
  if (reauthPeriod === null) return "needed at every login";
  return `counts for ${reauthPeriod} ${reauthPeriod === 1 ? "second" : "seconds"}`;
}

/** An access policy in a form in which it can be evaluated quickly for many logins. */
interface PreparedPolicy {
  readonly policy: AccessPolicy;
  readonly hasSource: (address: string) => boolean;
  /** The reason for a login that this policy allows without a re-authentication, or denies. */
  readonly reason: Reason;
  /** The reason for a login that this policy allows after a re-authentication. */
  readonly strict: Reason;
}

/** The decisions of access policies. Each policy is represented by its index in a sorted list. */
class IdentityAccess extends Access<Principal> {
  // Public keys and firewall rules have no effect.
  readonly keys = [];
  readonly rules = [];
  readonly objects: readonly DecidingObject[];
  readonly #policies: readonly PreparedPolicy[];
  readonly #byKey = new Map<string, PolicySet>();
  readonly #byPolicies = new Map<string, PolicySet>();
  readonly #verdicts = new Map<string, Verdict>();

  constructor(decider: Decider<Principal>, policy: NamespacePolicy, evaluation: Evaluation) {
    super(decider, policy, evaluation);
    this.objects = decider.objects;
    this.#policies = inPolicyOrder(decider.policies).map((policy) => ({
      policy,
      hasSource: sourceTest(policy),
      reason: { outcome: policy.action, rule: null, policy },
      strict: { outcome: "reauthentication", rule: null, policy },
    }));
  }

  /**
   * Returns the policies that apply to a principal. Returns the same object for principals to which the same policies
   * apply.
   */
  groupOf(principal: Principal | undefined): PolicySet {
    if (!principal) return NO_POLICIES;
    const key = `subject ${principal.id} ${principal.role}`;
    return this.#select(key, ({ policy }) => isSubject(policy, principal));
  }

  outcomeOf(outcome: Reason["outcome"], principal: Principal): Outcome {
    return outcomeFor(outcome, principal, keyStateOf(principal, this.time));
  }

  endOf({ keys }: Principal): string | undefined {
    const ends = keys?.filter((key) => isLive(key, this.time)).map(({ expiresAt }) => expiresAt) ?? [];
    return ends.includes(null) ? undefined : latest(ends.filter((end) => end !== null));
  }

  lapseOf(): undefined {
    return undefined;
  }

  admitted(principal: Principal): DeviceSet | undefined {
    return keyStateOf(principal, this.time) === "none" ? undefined : this.sets.all;
  }

  rulesForLogin(): RuleSet {
    return NO_RULES;
  }

  rulesForAddress(): RuleSet {
    return NO_RULES;
  }

  verdict(login: string, address: string, principal: Principal | undefined): Verdict {
    const matching = this.groupOf(principal).clone();
    matching.intersection(this.#select(`login ${login}`, ({ policy }) => hasLogin(policy, login)));
    matching.intersection(this.#select(`address ${address}`, ({ hasSource }) => hasSource(address)));
    const name = matching.toString();
    const verdict = this.#verdicts.get(name) ?? this.#judge(matching);
    this.#verdicts.set(name, verdict);
    return verdict;
  }

  /**
   * Returns the policies for which `test` returns true. The result is cached under `key`. Equal sets are the same
   * object.
   */
  #select(key: string, test: (policy: PreparedPolicy) => boolean): PolicySet {
    const known = this.#byKey.get(key);
    if (known) return known;
    const found = new TypedFastBitSet();
    for (const [place, policy] of this.#policies.entries()) if (test(policy)) found.add(place);
    const name = found.toString();
    const set = this.#byPolicies.get(name) ?? found;
    this.#byPolicies.set(name, set);
    this.#byKey.set(key, set);
    return set;
  }

  #judge(matching: PolicySet): Verdict {
    const applying = this.#policies.filter((_, place) => matching.has(place));
    // If one allow policy requires a re-authentication, the login requires it, even if a different policy also allows
    // the login.
    const strict = unionOf(
      applying
        .filter(({ policy }) => policy.action === "allow" && policy.requireReauth)
        .map(({ policy }) => this.sets.of(policy.filter, false)),
    );
    const left = this.sets.all.clone();
    const open: DeviceSet = new TypedFastBitSet();
    const shares: Share[] = [];
    for (const { policy, reason, strict: strictReason } of applying) {
      const isDeny = policy.action === "deny";
      const devices = this.sets.of(policy.filter, isDeny).new_intersection(left);
      const held = isDeny ? NO_DEVICES : devices.new_intersection(strict);
      const direct = devices.new_difference(held);
      if (!direct.isEmpty()) shares.push({ reason, devices: direct });
      if (!held.isEmpty()) shares.push({ reason: strictReason, devices: held });
      if (!isDeny) open.union(devices);
      left.difference(devices);
    }
    return { shares, open, held: open.new_intersection(strict), endings: [] };
  }
}

/** A set of access policies. */
type PolicySet = TypedFastBitSet;

const NO_POLICIES: PolicySet = new TypedFastBitSet();
const NO_RULES: RuleSet = new TypedFastBitSet();
