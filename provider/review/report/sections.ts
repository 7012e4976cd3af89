import { printableIssuer } from "@gatehouse-access/sdk/errors";
import {
  ANY_LOGIN,
  type FindingObject,
  isLaterEnd,
  type Outcome,
  otherAddressOf,
} from "@gatehouse-access/sdk/policy";
import { retainedObjects, typeName } from "../../engine/index.ts";
import type { PolicyTestResult } from "../../policyTests/results.ts";
import type { SettingChange } from "../../resources/namespace.ts";
import {
  byText,
  CONDITIONS,
  counted,
  firstOf,
  instantText,
  OTHER_LOGINS,
  printable,
  untilText,
} from "../../words.ts";
import { gainedRoles } from "./gainedRoles.ts";
import type {
  AcceptedTokens,
  ApiKeyChange,
  MemberChange,
  NamespaceReview,
  OtherPrivilege,
  Review,
  ReviewedAccess,
  ReviewedFinding,
  Revision,
  Revisions,
  WorkloadChange,
} from "./review.ts";

/** Escapes text from the service, so that names cannot control a terminal or format a comment. */
export interface Style {
  /** Formats a name: in backticks, bold, or plain. */
  readonly name: (name: string) => string;
  /** Escapes text that is not a name. */
  readonly text: (text: string) => string;
}

/** Formats the items of the sections of a report. */
export interface ReportStyle extends Style {
  /** Formats a sentence about gained or lost access. */
  readonly change: (change: ReviewedAccess["change"], sentence: string) => string;
  /** The lines of a policy test; an empty list if the report omits the test. */
  readonly test: (test: PolicyTestResult) => readonly string[];
}

/** The style of plain text. */
export const PLAIN: Style = { name: printable, text: printable };

/** A titled list in a report. Reports omit lists without items. */
export interface Section {
  readonly title: string;
  readonly items: readonly string[];
  /** True for lists that a terminal report omits. */
  readonly isDetail?: boolean;
  /** Markdown around the section, which folds several sections. */
  readonly around?: readonly [before: string, after: string];
}

/**
 * The sections of a review of one namespace.
 * @param where suffix of titles that would be ambiguous without the namespace: ` in the namespace prod`, or an empty string
 * @param whereIfSeveral suffix of other titles; an empty string if there is only one namespace
 */
export function namespaceSections(
  namespace: NamespaceReview,
  style: ReportStyle,
  where: string,
  whereIfSeveral: string,
): Section[] {
  const { access, members, workloads, apiKeys, settings, privileges, ending, tests, lint, coverage } =
    namespace;
  const { notEvaluated, unknown } = namespace;
  const managed = `${coverage.managed} of ${coverage.total} objects are managed (${coverage.percent} %)`;
  const findings = (isNew: boolean) =>
    lint
      .filter((finding) => finding.isNew === isNew)
      .map(({ severity, message }) => `${severity}: ${style.text(message)}`);
  return [
    {
      title: `Gained privileges${whereIfSeveral}`,
      items: gainedPrivileges(namespace).map((sentence) => style.change("gained", style.text(sentence))),
    },
    {
      title: `Access changes${where}`,
      items: access
        ? [
            ...access.map((line) => style.change(line.change, accessSentence(line, style))),
            access.length === 0 ? "No access changes." : "No other access changes.",
          ]
        : ["Access changes are not known. See the limitations."],
    },
    {
      title: `Member changes${whereIfSeveral}`,
      items: members.map((change) => memberSentence(change, style)),
    },
    {
      title: `Trusted workload changes${whereIfSeveral}`,
      items: workloads.map((change) => workloadSentence(change, style)),
    },
    {
      title: `API key changes${whereIfSeveral}`,
      items: apiKeys.map((change) => apiKeySentence(change, style)),
    },
    {
      title: `Setting changes${whereIfSeveral}`,
      items: settings.map((change) => settingSentence(change, style)),
    },
    {
      title: `Other privileges${whereIfSeveral}`,
      items: privileges.map((change) => style.change(change.change, privilegeSentence(change, style))),
    },
    {
      title: `Access that ends within ${counted(ending.withinDays, "day")}${whereIfSeveral}`,
      items: ending.objects.map(
        ({ kind, resource, until }) => `${kind} ${style.name(resource)}: ${untilText(until)}`,
      ),
    },
    {
      title: `Policy tests${whereIfSeveral}: ${passingOf(tests)} of ${tests.length} pass`,
      items: tests.flatMap(style.test),
    },
    { title: `New findings${whereIfSeveral}`, items: findings(true) },
    { title: `Existing findings${whereIfSeveral}`, items: findings(false), isDetail: true },
    {
      title: `Unmanaged objects${whereIfSeveral}: ${managed}`,
      items: coverage.unmanaged.map(
        ({ kind, name, widens, exception, declaredEarlier }) =>
          `${kind} ${style.name(name)}${declaredEarlier ? ", declared by this stack earlier" : ""}${widens.length > 0 ? `: ${style.text(widens.join("; "))}` : ""}${exception ? ` (excepted until ${exception.until}: ${style.text(exception.reason)})` : ""}`,
      ),
    },
    { title: `Limitations${where}`, items: [...notEvaluated, ...unknown].map(style.text) },
  ];
}

/** The sections of a review of the whole plan. */
export function planSections(
  { summary, changes, notEvaluated, unknown, testedElsewhere = [] }: Review,
  style: ReportStyle,
): Section[] {
  const { create, update, replace, delete: deleted } = summary;
  const left = retainedObjects(changes);
  const items = changes.map(({ op, type, name, fields, retained }) => {
    const changed = op === "update" || op === "replace" ? fields.map(({ path }) => style.name(path)) : [];
    const stays = retained ? ` (${op === "replace" ? "the old object" : "the object"} stays, unmanaged)` : "";
    return `${op} ${typeName(type)} ${style.name(name)}${changed.length > 0 ? `: ${changed.join(", ")}` : ""}${stays}`;
  });
  const unmanaged = left > 0 ? `, ${left} to leave unmanaged` : "";
  const title = `Resources: ${create} to create, ${update} to update, ${replace} to replace, ${deleted - left} to delete${unmanaged}`;
  return [
    ...testedElsewhere.map(({ name, tests }) => ({
      title: `Policy tests in the namespace ${style.text(name)}: ${passingOf(tests)} of ${tests.length} pass`,
      items: tests.flatMap(style.test),
    })),
    { title, items, isDetail: true },
    { title: "Limitations", items: [...notEvaluated, ...unknown].map(style.text) },
  ];
}

const passingOf = (tests: readonly PolicyTestResult[]): number => tests.filter(({ ok }) => ok).length;

const failingTests = (tests: readonly PolicyTestResult[]): string[] =>
  tests.filter(({ ok }) => !ok).map(({ name }) => `the policy test "${name}" fails`);

/** The kinds of findings that do not block a change, by the flags of the command. */
export interface Allowed {
  readonly allowLockout: boolean;
  readonly allowUnmanaged: boolean;
  /** True if missing permissions do not block the change, because another credential applies the plan. */
  readonly allowMissingPermissions: boolean;
  readonly allowFindings: boolean;
  readonly allowIncomplete: boolean;
}

/** The blocking findings of a review, as sentences. */
export function objections(review: Review, allowed: Allowed): string[] {
  // Unmanaged objects are the same in both revisions, so they do not block a review of two revisions.
  const allowUnmanaged = allowed.allowUnmanaged || review.revisions !== undefined;
  const ofNamespaces = review.namespaces.flatMap((namespace) => {
    const { name, lockouts, missingPermissions, tests, coverage, notEvaluated } = namespace;
    const locked = lockouts.map(({ message }) => message);
    const missing = missingPermissions.map(
      ({ reason, resources }) => `${reason}; required by ${resources.slice(0, 5).join(", ")}`,
    );
    const findings = [
      ...weakenedProtections(namespace),
      ...blockingFindings(namespace).map(({ message, suggestion }) =>
        suggestion ? `${message} ${suggestion}` : message,
      ),
    ];
    return [
      ...unless(allowed.allowLockout, "--allow-lockout", locked),
      ...unless(allowed.allowMissingPermissions, "--allow-missing-permissions", missing),
      ...unless(allowUnmanaged, "--allow-unmanaged", wideningOf(coverage)),
      ...unless(allowed.allowFindings, "--allow-findings", findings),
      ...unless(allowed.allowIncomplete, "--allow-incomplete", notEvaluated),
      ...failingTests(tests),
    ].map((sentence) => `${name}: ${sentence}`);
  });
  const elsewhere = (review.testedElsewhere ?? []).flatMap(({ name, tests }) =>
    failingTests(tests).map((sentence) => `${name}: ${sentence}`),
  );
  return [
    ...review.duplicateDeclarations.map(
      ({ object, urns }) => `duplicate declarations of ${object}: ${urns.join(" and ")}`,
    ),
    ...review.preflightFailures,
    ...unless(allowed.allowIncomplete, "--allow-incomplete", review.notEvaluated),
    ...ofNamespaces,
    ...elsewhere,
  ];
}

/**
 * Returns the findings that block unless a flag allows them; an empty list if this flag is set. Each sentence ends with
 * the name of the flag.
 */
const unless = (isAllowed: boolean, flag: string, sentences: readonly string[]): string[] =>
  isAllowed ? [] : sentences.map((sentence) => `${sentence} (allow with ${flag})`);

/** Changes of settings that weaken a protection, as sentences. They block. */
export const weakenedProtections = ({ settings }: Pick<NamespaceReview, "settings">): string[] =>
  settings
    .filter(({ effect }) => effect === "weakens")
    .map((change) => `the setting ${settingSentence(change, PLAIN)}`);

/** The new lint findings that block: errors, and unanchored patterns of keys and rules that give access. */
export function blockingFindings({ lint, access }: NamespaceReview): ReviewedFinding[] {
  const gained = (access ?? []).filter(isGain);
  const widens = ({ kind, id }: FindingObject) =>
    kind === "key"
      ? gained.some(({ keys }) => keys.some(({ fingerprint }) => fingerprint === id))
      : gained.length > 0;
  return lint.filter(
    ({ rule, severity, object, isNew }) =>
      isNew &&
      (severity === "error" || (rule === "unanchored-pattern" && severity === "warning" && widens(object))),
  );
}

/** Returns true if a line gives access, or prolongs it. */
export const isGain = ({ change, until, untilBefore }: ReviewedAccess): boolean =>
  change === "gained" || (change === "altered" && isLaterEnd(untilBefore ?? undefined, until ?? undefined));

const UNMANAGED_MAX = 10;

function wideningOf({ unmanaged }: NamespaceReview["coverage"]): string[] {
  const open = unmanaged
    .filter(({ widens, exception }) => widens.length > 0 && exception === undefined)
    .map(
      ({ kind, id, name, widens }) =>
        `${kind} ${name}${name.startsWith(id) ? "" : ` (${id})`} is unmanaged and widens access: ${widens.join("; ")}`,
    );
  const more = open.length - UNMANAGED_MAX;
  const others = more > 0 ? [`${more} more unmanaged objects widen access`] : [];
  return [...open.slice(0, UNMANAGED_MAX), ...others];
}

const LISTED_MAX = 3;

/** A list of names in a sentence: `a`, `a and b`, `a, b and 4 more`. */
const listed = (names: readonly string[], style: Style): string => listedTexts(names.map(style.name));

/** A list of formatted texts in a sentence, like {@link listed}. */
function listedTexts(texts: readonly string[]): string {
  const shown = texts.slice(0, texts.length === LISTED_MAX + 1 ? LISTED_MAX + 1 : LISTED_MAX);
  const more = texts.length - shown.length;
  if (more > 0) return `${shown.join(", ")} and ${more} more`;
  const last = shown.pop() ?? "";
  return shown.length === 0 ? last : `${shown.join(", ")} and ${last}`;
}

/** Returns a list of names in a sentence. The name that represents all other names becomes a placeholder at the end. */
function withOthers(
  names: readonly string[],
  representative: string,
  placeholder: string,
  style: Style,
): string {
  const others = style.text(placeholder);
  const named = names.filter((name) => name !== representative);
  if (named.length === names.length) return listed(named, style);
  if (named.length === 0) return others;
  if (named.length > LISTED_MAX) return `${listed(named, style)}, and ${others}`;
  return `${named.map(style.name).join(", ")} and ${others}`;
}

/** The names of the subjects. If the access mode changes, also the principals of keys: `ana (now user ana@example.com)`. */
function subjectTexts({ keys, principals = [], newMode }: ReviewedAccess, style: Style): string[] {
  if (keys.length === 0) return principals.map(({ name }) => style.name(name));
  const when = newMode === "identity" ? "now" : "before:";
  return keys.map(({ name }, index) => {
    const principal = principals[index];
    const other = principal ? ` (${when} ${principal.kind} ${style.name(principal.name)})` : "";
    return `${style.name(name)}${other}`;
  });
}

/** A sentence about an access change: `key laptop-alice gains login root on 14 devices tagged prod`. */
export function accessSentence(line: ReviewedAccess, style: Style): string {
  const { change, keys, principals = [], before = "allow", after = "allow" } = line;
  const subjects = subjectTexts(line, style);
  const many = subjects.length > 1;
  const kind = keys.length > 0 ? "key" : principals[0]?.kind;
  const who = `${many ? `${subjects.length} ${kind}s` : kind} ${listedTexts(subjects)}`;
  const reach = reachPhrase(line, style);
  switch (change) {
    case "gained":
      return `${who} ${many ? "gain" : "gains"} ${reach}${startPhrase(line)}${endPhrase(line)}${CONDITIONS[after]}`;
    case "lost":
      return `${who} ${many ? "lose" : "loses"} ${reach}${CONDITIONS[before]}`;
    case "altered": {
      const ends = line.until === line.untilBefore ? undefined : changedEnd(line);
      if (ends && before === after) return `${who}: ${reach}${startPhrase(line)} ${ends}`;
      const need = `${who} ${many ? "need" : "needs"} ${NEEDED[after]} for ${reach}`;
      return `${need} (before: ${NEEDED[before]})${ends ? `, ${ends}` : ""}`;
    }
  }
}

/** The start of access that a change gives later, in a phrase: ` starting 2026-12-01 18:00 UTC`. Empty otherwise. */
export const startPhrase = ({ starts }: Pick<ReviewedAccess, "starts">): string =>
  starts === undefined ? "" : ` starting ${instantText(starts)}`;

/** The end of access after a change, at the end of a phrase: ` until 2026-12-01 18:00 UTC`. Empty without an end. */
export const endPhrase = ({ until }: Pick<ReviewedAccess, "until">): string =>
  until === null ? "" : ` ${untilText(until)}`;

const endText = (end: string | null) => (end === null ? "without an end" : untilText(end));

/** The ends of access after and before a change. */
const changedEnd = ({ until, untilBefore }: Pick<ReviewedAccess, "until" | "untilBefore">): string =>
  `${endText(until)} (before: ${endText(untilBefore)})`;

/** The condition of a login, as the object of a sentence. */
const NEEDED: Readonly<Record<Outcome, string>> = {
  allow: "no confirmation",
  reauthentication: "a re-authentication",
  approval: "the approval of an SSH key",
  unknown: "an SSH key",
  deny: "another access policy",
};

/** The logins, addresses and devices of an access change: `login root on 14 devices tagged prod`. */
export function reachPhrase(
  line: Pick<ReviewedAccess, "anyLogin" | "logins" | "anyAddress" | "addresses" | "otherAddress" | "where">,
  style: Style,
): string {
  const logins = line.anyLogin
    ? "every login"
    : `${line.logins.length > 1 ? "logins" : "login"} ${withOthers(line.logins, ANY_LOGIN, OTHER_LOGINS, style)}`;
  const from = line.anyAddress
    ? ""
    : ` from ${withOthers(line.addresses, otherAddressOf(line), "<any other address>", style)}`;
  return `${logins}${from} on ${style.text(line.where)}`;
}

/** A sentence about a changed member: `carla@example.com becomes observer (was administrator)`. */
export function memberSentence(change: MemberChange, style: Style): string {
  const { email, from, to, until, untilBefore = null, refusedKeys: keys = [] } = change;
  const end = until === undefined ? "" : `, membership ${changedEnd({ until, untilBefore })}`;
  const owned = `${counted(keys.length, "key")} of the member (${listed(keys, style)})`;
  const refused = keys.length > 0 ? `. The service refuses ${owned} and ends the sessions` : "";
  switch (change.change) {
    case "added":
      return `${style.name(email)} is added as ${to}${until ? ` ${untilText(until)}` : ""}`;
    case "removed":
      return `${style.name(email)} is removed (was ${from})${refused}`;
    case "role":
      return `${style.name(email)} becomes ${to} (was ${from})${end}`;
    case "end":
      return `${style.name(email)} (${to})${end}${refused}`;
  }
}

/**
 * A sentence about a changed trusted workload: `deploy becomes administrator (was operator)`, with the accepted tokens if
 * they change.
 */
export function workloadSentence(change: WorkloadChange, style: Style): string {
  const { from, to, accepts, acceptedBefore } = change;
  const name = style.name(change.name);
  if (accepts === undefined) return `${name} is removed (was ${from})`;
  const tokens = tokensPhrase(accepts, style);
  if (change.change === "added") return `${name} is added as ${to}, for ${tokens}`;
  const role = from === to ? `${name} (${to})` : `${name} becomes ${to} (was ${from})`;
  return acceptedBefore ? `${role}: ${tokens} (before: ${tokensPhrase(acceptedBefore, style)})` : role;
}

/** A sentence about a changed API key: `ci is added as operator until 2026-12-01 18:00 UTC`. */
export function apiKeySentence(
  { change, name, from, to, until, untilBefore = null, isLonger }: ApiKeyChange,
  style: Style,
): string {
  const before = isLonger ? `, for a longer time (before: ${endText(untilBefore)})` : "";
  const end = until === undefined ? "" : ` ${endText(until)}${before}`;
  switch (change) {
    case "added":
      return `${style.name(name)} is added as ${to}${end}`;
    case "removed":
      return `${style.name(name)} is removed (was ${from})`;
    case "replaced":
      return `${style.name(name)} is replaced by a new key, as ${to}${from === to ? "" : ` (was ${from})`}${end}`;
    case "role":
      return `${style.name(name)} becomes ${to} (was ${from})`;
  }
}

/** A sentence about a changed setting: `sessionRecord changes from true to false, which weakens a protection`. */
export function settingSentence({ setting, from, to, effect }: SettingChange, style: Style): string {
  const values = `from ${style.text(JSON.stringify(from))} to ${style.text(JSON.stringify(to))}`;
  const effects = { opens: ", which allows forwarding", weakens: ", which weakens a protection" };
  return `${style.name(setting)} changes ${values}${effect ? effects[effect] : ""}`;
}

/** A sentence about a privilege beside logins and roles: `InstallKey floor enrolls devices in the namespace`. */
export const privilegeSentence = (
  { change, kind, resource, privilege }: OtherPrivilege,
  style: Style,
): string =>
  `${kind} ${style.name(resource)} ${change === "lost" ? "no longer " : ""}${style.text(privilege)}`;

/**
 * The privileges beside logins that a change gives: roles above observer, forwarding and the enrollment of devices. The
 * summary of a review lists them.
 */
export function gainedPrivileges(namespace: GivenPrivileges): string[] {
  const roles = Map.groupBy(gainedRoles(namespace), ({ role }) => role);
  return [
    ...[...roles].map(
      ([role, gained]) =>
        `role ${role}: ${firstOf(
          gained.map(({ holder }) => holder),
          GAINED_MAX,
        )}`,
    ),
    ...namespace.settings
      .filter(({ effect }) => effect === "opens")
      .map(({ setting }) => `setting ${setting}`),
    ...namespace.privileges
      .filter(({ change }) => change !== "lost")
      .map((privilege) => privilegeSentence(privilege, PLAIN)),
  ];
}

/** The changes of a namespace that may give privileges beside logins. */
type GivenPrivileges = Pick<NamespaceReview, "members" | "workloads" | "apiKeys" | "settings" | "privileges">;

const GAINED_MAX = 5;

/** The tokens that a trusted workload accepts: `tokens of <issuer> with repository "acme/fleet", used once`. */
export function tokensPhrase(
  { issuer, audience, claims, maxSessionMinutes, singleUse }: AcceptedTokens,
  style: Style,
): string {
  const conditions = Object.entries(claims)
    .toSorted(([left], [right]) => byText(left, right))
    .map(([name, value]) => style.text(`${name} ${JSON.stringify(value)}`));
  return `tokens of ${style.text(printableIssuer(issuer))} for ${style.text(audience)} with ${conditions.join(" and ")}, up to ${counted(maxSessionMinutes, "minute")}${singleUse ? ", used once" : ""}`;
}

/** The devices, keys, rules, logins and addresses for which access was evaluated, as a sentence. */
export function evaluatedSentence({ access, evaluated }: NamespaceReview, style: Style): string {
  if (!access) return "Access was not evaluated.";
  const { devices, keys, rules, principals, policies, sessions, logins, addresses } = evaluated;
  const deciding =
    policies === undefined
      ? `${counted(keys, "key")} and ${counted(rules, "firewall rule")}`
      : `${counted(principals ?? 0, "user or service account", "users and service accounts")} and ${counted(policies, "access policy", "access policies")}`;
  const counts = `${counted(devices, "device")}, ${deciding}`;
  const names = withOthers(logins, ANY_LOGIN, OTHER_LOGINS, style);
  const other = otherAddressOf(evaluated);
  const places = addresses.some((address) => address !== other)
    ? `addresses ${withOthers(addresses, other, "<any other address>", style)}`
    : "any address";
  const seen =
    sessions > 0 ? `, including logins and addresses of the latest ${counted(sessions, "session")}` : "";
  return `Evaluated for ${counts}; logins ${names}; ${places}${seen}.`;
}

const SHORT = 10;

/** A revision in a sentence: `origin/main (0123456789)`, or only the id of the commit if the given name is the id. */
function revisionInWords({ name, commit }: Revision, style: Style): string {
  if (commit === null) return style.text(name);
  const id = style.name(commit.slice(0, SHORT));
  return commit.startsWith(name) ? id : `${style.name(name)} (${id})`;
}

/** The compared revisions in a sentence: `origin/main (0123456789) to the working folder`. */
export const revisionsInWords = ({ base, head }: Revisions, style: Style): string =>
  `${revisionInWords(base, style)} to ${revisionInWords(head, style)}`;

/** Lists the revisions that a review compares, and the differences that the review omits. */
export const revisionsSentence = (revisions: Revisions, style: Style): string =>
  `Changes from ${revisionsInWords(revisions, style)}${
    revisions.head.commit === null ? ", including uncommitted changes" : ""
  }. Other differences from the live namespace, such as drift and unapplied changes, are omitted.`;
