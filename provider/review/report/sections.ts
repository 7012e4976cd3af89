import { ANY_ADDRESS, ANY_LOGIN, type FindingObject } from "@gatehouse-access/sdk/policy";
import { retainedObjects, typeName } from "../../engine/index.ts";
import type { PolicyTestResult } from "../../policyTests/results.ts";
import { counted, printable } from "../../words.ts";
import type {
  MemberChange,
  NamespaceReview,
  Review,
  ReviewedAccess,
  ReviewedFinding,
  Revision,
  Revisions,
} from "./review.ts";

/** How a report writes text that comes from the service, so that nobody's name can steer a terminal or format a comment. */
export interface Style {
  /** A name that stands out: in backticks, in bold, or as it is. */
  readonly name: (name: string) => string;
  /** Words that hold names. */
  readonly text: (text: string) => string;
}

/** How a report writes the items of its sections. */
export interface ReportStyle extends Style {
  /** A sentence about access that is gained or lost. */
  readonly change: (change: ReviewedAccess["change"], sentence: string) => string;
  /** What came of a policy test; nothing where the report leaves it out. */
  readonly test: (test: PolicyTestResult) => readonly string[];
}

/** Without bold or backticks. */
export const PLAIN: Style = { name: printable, text: printable };

/** A list of a report; one without items is left out. */
export interface Section {
  readonly title: string;
  readonly items: readonly string[];
  /** True for a list that a short report leaves out. */
  readonly isDetail?: boolean;
}

/**
 * What a review says of one namespace.
 * @param where the namespace, for titles that must tell it apart from the whole plan: ` in prod`, or nothing
 * @param whereIfSeveral the same for titles that need it only where there are several namespaces
 */
export function namespaceSections(
  { access, members, tests, lint, coverage, unseen, unknown }: NamespaceReview,
  style: ReportStyle,
  where: string,
  whereIfSeveral: string,
): Section[] {
  const passing = tests.filter(({ ok }) => ok).length;
  const declared = `${coverage.managed} of ${coverage.total} objects are (${coverage.percent} %)`;
  const findings = (isNew: boolean) =>
    lint
      .filter((finding) => finding.isNew === isNew)
      .map(({ severity, message }) => `${severity}: ${style.text(message)}`);
  return [
    {
      title: `Who can reach what${where}`,
      items: [
        ...access.map((line) => style.change(line.change, accessSentence(line, style))),
        access.length === 0 ? "Nobody gains or loses access." : "Nobody else gains or loses access.",
      ],
    },
    { title: `Members${whereIfSeveral}`, items: members.map((change) => memberSentence(change, style)) },
    {
      title: `Policy tests${whereIfSeveral}: ${passing} of ${tests.length} pass`,
      items: tests.flatMap(style.test),
    },
    { title: `Findings that this change brings${whereIfSeveral}`, items: findings(true) },
    { title: `Older findings${whereIfSeveral}`, items: findings(false), isDetail: true },
    {
      title: `Not in this program${whereIfSeveral}: ${declared}`,
      items: coverage.unmanaged.map(
        ({ kind, name, widens, exception }) =>
          `${kind} ${style.name(name)}${widens.length > 0 ? `: ${style.text(widens.join("; "))}` : ""}${exception ? ` (excepted until ${exception.until}: ${style.text(exception.reason)})` : ""}`,
      ),
    },
    { title: `Not known${where}`, items: [...unseen, ...unknown].map(style.text) },
  ];
}

/** What a review says of the whole plan. */
export function planSections({ summary, changes, unseen, unknown }: Review, style: Style): Section[] {
  const { create, update, replace, delete: gone } = summary;
  const left = retainedObjects(changes);
  const items = changes.map(({ op, type, name, fields, retained }) => {
    const changed = op === "update" || op === "replace" ? fields.map(({ path }) => style.name(path)) : [];
    const stays = retained ? ` (${op === "replace" ? "the old object" : "the object"} stays, unmanaged)` : "";
    return `${op} ${typeName(type)} ${style.name(name)}${changed.length > 0 ? `: ${changed.join(", ")}` : ""}${stays}`;
  });
  const unmanaged = left > 0 ? `, ${left} to leave unmanaged` : "";
  const title = `Resources: ${create} to create, ${update} to update, ${replace} to replace, ${gone - left} to delete${unmanaged}`;
  return [
    { title, items, isDetail: true },
    { title: "Not known", items: [...unseen, ...unknown].map(style.text) },
  ];
}

/** What of a review does not stand against a change. */
export interface Allowed {
  readonly allowLockout: boolean;
  readonly allowUnmanaged: boolean;
  /** What the credential may not do: another one applies the plan. */
  readonly allowMissingRights: boolean;
  /** Findings that the change brings. */
  readonly allowFindings: boolean;
  /** What could not be looked at. */
  readonly allowUnseen: boolean;
}

/** Why a change should not be made, as sentences; empty when nothing stands against it. */
export function objections(
  review: Review,
  { allowLockout, allowUnmanaged, allowMissingRights, allowFindings, allowUnseen }: Allowed,
): string[] {
  // What is there besides is no part of what differs between two revisions.
  const isBeside = allowUnmanaged || review.revisions !== undefined;
  const notSeen = (sentences: readonly string[]) =>
    allowUnseen ? [] : sentences.map((sentence) => `${sentence} (--allow-unseen permits it)`);
  const ofNamespaces = review.namespaces.flatMap((namespace) => {
    const { name, lockouts, incapabilities, tests, coverage, unseen } = namespace;
    return [
      ...(allowLockout
        ? []
        : lockouts.map(({ message }) => `${name}: ${message} (--allow-lockout permits it)`)),
      ...(allowMissingRights
        ? []
        : incapabilities.map(
            ({ reason, resources }) =>
              `${name}: ${reason}; needed by ${resources.slice(0, 5).join(", ")} (--allow-missing-rights permits it)`,
          )),
      ...(isBeside ? [] : wideningOf(coverage).map((sentence) => `${name}: ${sentence}`)),
      ...(allowFindings
        ? []
        : blockingFindings(namespace).map(
            ({ message, suggestion }) =>
              `${name}: ${[message, ...(suggestion ? [suggestion] : [])].join(" ")} (--allow-findings permits it)`,
          )),
      ...notSeen(unseen).map((sentence) => `${name}: ${sentence}`),
      ...tests.filter(({ ok }) => !ok).map((test) => `${name}: the policy test "${test.name}" fails`),
    ];
  });
  return [
    ...review.twins.map(({ object, urns }) => `${object} is declared twice: ${urns.join(" and ")}`),
    ...review.refused,
    ...notSeen(review.unseen),
    ...ofNamespaces,
  ];
}

/**
 * The findings that block a change which brings them: errors, and open patterns of keys and rules that let somebody in who
 * had no access before.
 */
export function blockingFindings({ lint, access }: NamespaceReview): ReviewedFinding[] {
  const gained = access.filter(({ change }) => change === "gained");
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

/** Unmanaged objects that widen access, as sentences; of many the first ones. */
function wideningOf({ unmanaged }: NamespaceReview["coverage"]): string[] {
  const open = unmanaged.filter(({ widens, exception }) => widens.length > 0 && exception === undefined);
  const more = open.length - UNMANAGED_MAX;
  return [
    ...open
      .slice(0, UNMANAGED_MAX)
      .map(
        ({ kind, id, name, widens }) =>
          `${kind} ${name}${name.startsWith(id) ? "" : ` (${id})`}, in no program, ${widens.join("; ")} (--allow-unmanaged permits it)`,
      ),
    ...(more > 0 ? [`${more} more objects in no program widen access (--allow-unmanaged permits it)`] : []),
  ];
}

/** Most unmanaged objects that are named as reasons. */
const UNMANAGED_MAX = 10;

/** Most names of one list in a sentence. */
const LISTED_MAX = 3;

/** `a`, `a and b`, `a, b and 4 more`. */
function listed(names: readonly string[], style: Style): string {
  const shown = names.slice(0, names.length === LISTED_MAX + 1 ? LISTED_MAX + 1 : LISTED_MAX).map(style.name);
  const more = names.length - shown.length;
  if (more > 0) return `${shown.join(", ")} and ${more} more`;
  const last = shown.pop() ?? "";
  return shown.length === 0 ? last : `${shown.join(", ")} and ${last}`;
}

/** The same; a name that stands for every other one comes last, in words. */
function withOthers(names: readonly string[], standIn: string, others: string, style: Style): string {
  const named = names.filter((name) => name !== standIn);
  if (named.length === names.length) return listed(named, style);
  if (named.length === 0) return others;
  if (named.length > LISTED_MAX) return `${listed(named, style)}, and ${others}`;
  return `${named.map(style.name).join(", ")} and ${others}`;
}

/** `key laptop-alice gains login root on 14 devices tagged prod`. */
export function accessSentence(line: ReviewedAccess, style: Style): string {
  const many = line.keys.length > 1;
  const who = `${many ? `${line.keys.length} keys` : "key"} ${listed(
    line.keys.map(({ name }) => name),
    style,
  )}`;
  const verb = { gained: many ? "gain" : "gains", lost: many ? "lose" : "loses" }[line.change];
  return `${who} ${verb} ${reachPhrase(line, style)}`;
}

/** `login root on 14 devices tagged prod`. */
export function reachPhrase(line: Omit<ReviewedAccess, "change" | "keys">, style: Style): string {
  const logins = line.anyLogin
    ? "every login"
    : `${line.logins.length > 1 ? "logins" : "login"} ${withOthers(line.logins, ANY_LOGIN, "any other", style)}`;
  const from = line.anyAddress
    ? ""
    : ` from ${withOthers(line.addresses, ANY_ADDRESS, "any other address", style)}`;
  return `${logins}${from} on ${style.text(line.where)}`;
}

/** `carla@example.com becomes observer (was administrator)`. */
export function memberSentence({ change, email, from, to }: MemberChange, style: Style): string {
  if (change === "added") return `${style.name(email)} becomes a member, as ${to}`;
  if (change === "removed") return `${style.name(email)} is no member any more (was ${from})`;
  return `${style.name(email)} becomes ${to} (was ${from})`;
}

/** What the access of a namespace was evaluated for. */
export function domainSentence({ domain }: NamespaceReview, style: Style): string {
  const { devices, keys, rules, sessions, logins, addresses } = domain;
  const counts = `${counted(devices, "device")}, ${counted(keys, "key")} and ${counted(rules, "firewall rule")}`;
  const names = withOthers(logins, ANY_LOGIN, "any other", style);
  const places = addresses.some((address) => address !== ANY_ADDRESS)
    ? `the addresses ${withOthers(addresses, ANY_ADDRESS, "any other", style)}`
    : "any address";
  const seen = sessions > 0 ? ` (the latest ${counted(sessions, "session")} among their sources)` : "";
  return `Evaluated for ${counts}, the logins ${names}, ${places}${seen}.`;
}

/** Digits of a commit's id that people are shown. */
const SHORT = 10;

/** `origin/main (0123456789)`; where the commit was given by its id, the id alone. */
function revisionInWords({ name, commit }: Revision, style: Style): string {
  if (commit === null) return style.text(name);
  const id = style.name(commit.slice(0, SHORT));
  return commit.startsWith(name) ? id : `${style.name(name)} (${id})`;
}

/** `origin/main (0123456789) to the working folder`. */
export const revisionsInWords = ({ base, head }: Revisions, style: Style): string =>
  `${revisionInWords(base, style)} to ${revisionInWords(head, style)}`;

/** Says that a review compares two revisions, and which differences it leaves out. */
export const revisionsSentence = (revisions: Revisions, style: Style): string =>
  `From ${revisionsInWords(revisions, style)}${
    revisions.head.commit === null ? ", uncommitted changes included" : ""
  }. What else the live namespace differs in, such as drift or changes that are not applied yet, is left out.`;
