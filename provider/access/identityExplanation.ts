import {
  type AccessPolicy,
  type AccessSubject,
  type ConsideredPolicy,
  explainIdentity,
  type IdentityExplanation,
  type IdentityRules,
  isLive,
  type Principal,
  subjectFacts,
  subjectsOf,
} from "@gatehouse-access/sdk/policy";
import { CONDITIONS, counted, subjectText } from "../words.ts";
import { type ExplainedLogin, explainedLogin, filterText, only, renderExplanation } from "./explanation.ts";
import { type AccessView, keysMatching } from "./inquiry.ts";

/** The reasons for the decision about one login in identity mode. */
export interface ExplainedIdentity extends IdentityExplanation, ExplainedLogin {
  /** The time of the login, in RFC 3339. */
  readonly at: string;
}

/**
 * Explains the decision about one login in identity mode. If the inquiry contains the fingerprint of an SSH key,
 * evaluates a login with this key. Otherwise, evaluates a login with any usable key of the principal.
 * @throws AccessInquiryError unless the inquiry matches exactly one principal and one device
 */
export function explainedIdentity(view: AccessView<Principal>): ExplainedIdentity {
  const { estate, inquiry } = view;
  const { devices, identity = NO_RULES } = estate.policy;
  const { subject: principal, device, ...explained } = explainedLogin(view);
  const selected = inquiry.keys.flatMap((selector) => keysMatching(principal, selector));
  const key = inquiry.keys.length === 0 ? undefined : only("key", selected, ({ fingerprint }) => fingerprint);
  const at = view.access.time;
  const { login, address } = explained;
  const question = { subject: key?.fingerprint ?? principal.id, login, address, uid: device.uid, at };
  return { ...explainIdentity({ devices, identity }, question), ...explained, at: at.toISOString() };
}

const NO_RULES: IdentityRules = { policies: [], principals: [] };

const HEADLINES = {
  allow: "ALLOWED",
  reauthentication: "ALLOWED AFTER A RE-AUTHENTICATION",
  approval: "ALLOWED AFTER THE APPROVAL OF AN SSH KEY",
  unknown: "UNKNOWN",
  deny: "DENIED",
} as const;

export function identityExplanationText(view: AccessView, explanation: ExplainedIdentity): string {
  const { outcome, principal, considered } = explanation;
  return renderExplanation(view, explanation, {
    result: HEADLINES[outcome],
    who: principal ? subjectText(principal) : "the key",
    reason: reason(explanation),
    subject: principal ? [principalLine(principal, new Date(explanation.at))] : [],
    order: "Access policies; any policy that denies is stronger than all that allow:",
    objects: considered.map((one) => policyLine(one, subjectsOf(view.estate.policy))),
  });
}

/** Returns the reason for the decision about a login in identity mode, as part of a sentence. */
export function reason({
  outcome,
  deniedBy,
  considered,
  principal,
  reauthPeriod,
}: IdentityExplanation): string {
  const names = (role: ConsideredPolicy["role"]) =>
    considered.filter((one) => one.role === role).map(({ policy }) => policy.name);
  switch (deniedBy) {
    case "policies":
      return "the namespace has no access policy";
    case "key":
      return principal?.keys?.length
        ? "the SSH key has expired or was used up"
        : `the principal has no SSH key, and ${principal?.kind === "user" ? "the role does not permit a new one" : "a service account cannot get a new one"}`;
    case "policy":
      return `the access policy ${names("denies")[0]} denies the login`;
    case "default":
      return "no access policy allows the login, so the default (deny) applies";
    default: {
      const allowed = `the access policy ${names("allows")[0]} allows the login`;
      if (outcome === "unknown")
        return `${allowed}, but the service does not show whether the user has an SSH key`;
      if (outcome !== "reauthentication") return `${allowed}${CONDITIONS[outcome]}`;
      return `${allowed}${CONDITIONS[outcome]}, ${reauthPeriod === null ? "at every login" : `which counts for ${counted(reauthPeriod ?? 0, "second")}`}`;
    }
  }
}

function principalLine({ kind, name, role, keys }: Principal, at: Date): string {
  const live = keys?.filter((key) => isLive(key, at)).length;
  const held = keys ? `${counted(keys.length, "SSH key")}, ${live} of them valid` : "SSH keys not known";
  return `${kind === "user" ? "User" : "Service account"} ${name} (${role}), ${held}`;
}

function policyLine(
  { policy, role, mismatches }: ConsideredPolicy,
  principals: readonly AccessSubject[],
): string {
  const differs = mismatches.length > 1 ? "differ" : "differs";
  const verdict =
    role === "no match" ? `does not apply: ${mismatches.join(", ")} ${differs}` : VERDICTS[role];
  return `  ${policy.name} (${policy.action}) ${verdict}. Conditions: ${conditionsOfPolicy(policy, principals)}`;
}

const VERDICTS = {
  denies: "denies the login",
  allows: "allows the login",
  "no effect": "has no effect, since another policy denies",
} as const;

/**
 * Describes the subjects, logins, addresses and devices of a policy, as part of a sentence.
 * @param principals the principals whose names replace their ids
 */
export function conditionsOfPolicy(policy: AccessPolicy, principals: readonly AccessSubject[]): string {
  const { subject, logins, sourceIps, filter, action, requireReauth } = policy;
  const { type, value } = subject;
  const principal = type === "user" ? principals.find((one) => subjectFacts(one).id === value) : undefined;
  const who = principal
    ? subjectText(principal)
    : type === "all-members"
      ? "all members"
      : `${type} ${value}`;
  return [
    who,
    logins.includes("*") ? "any login name" : `login ${logins.join(" or ")}`,
    sourceIps.length === 0 ? "any address" : `address in ${sourceIps.join(" or ")}`,
    filterText(filter, action === "deny" ? "every" : "no"),
    ...(requireReauth && action === "allow" ? ["with a re-authentication"] : []),
  ].join("; ");
}
