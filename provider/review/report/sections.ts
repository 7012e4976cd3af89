import { ANY_LOGIN, DECIDER_NOUNS, type FindingObject, otherAddressOf } from "@gatehouse-access/sdk/policy";
import { retainedObjects, typeName } from "../../engine/index.ts";
import { withOthers } from "../../model/changeTexts.ts";
import type { PolicyTestResult } from "../../policyTests/results.ts";
import { accessSentence, isGain, type ReviewedAccess } from "../../privileges/accessLines.ts";
import {
  changeLists,
  changesIn,
  gainsOf,
  type OtherChanges,
  weakenedBy,
} from "../../privileges/privileges.ts";
import { PLAIN, type Style } from "../../style.ts";
import { counted, OTHER_ADDRESSES, OTHER_LOGINS, untilText } from "../../words.ts";
import type {
  NamespaceReview,
  Review,
  ReviewedFinding,
  Revision,
  Revisions,
  UndeclaredObject,
} from "./review.ts";

/** A format for the items in the sections of a report. */
export interface ReportStyle extends Style {
  /** Formats a sentence about gained or lost access. */
  readonly change: (change: ReviewedAccess["change"], sentence: string) => string;
  /** Returns the lines for a policy test. Returns an empty list if the report omits the test. */
  readonly test: (test: PolicyTestResult) => readonly string[];
}

/** A titled list in a report. Reports omit lists without items. */
export interface Section {
  readonly title: string;
  readonly items: readonly string[];
  /** True for lists that a terminal report omits. */
  readonly isDetail?: boolean;
  /**
   * Markdown before and after the section. Several sections together form one collapsed block: its start is before the
   * first section, and its end is after the last section.
   */
  readonly around?: readonly [before: string, after: string];
}

/**
 * Returns the sections of a review of one namespace.
 * @param where suffix of titles that would be ambiguous without the namespace: ` in the namespace prod`, or an empty
 *   string
 * @param whereIfSeveral suffix of all other titles; an empty string if there is only one namespace
 */
export function namespaceSections(
  namespace: NamespaceReview,
  style: ReportStyle,
  where: string,
  whereIfSeveral: string,
): Section[] {
  const { access, ending, tests, lint, coverage } = namespace;
  const { notEvaluated, unknown } = namespace;
  const managed = `${coverage.managed} of ${coverage.total} objects are managed (${coverage.percent} %)`;
  const findings = (isNew: boolean) =>
    lint
      .filter((finding) => finding.isNew === isNew)
      .map(({ severity, message }) => `${severity}: ${style.text(message)}`);
  return [
    {
      title: `Gained privileges${whereIfSeveral}`,
      items: gainsOf(namespace).map((sentence) => style.change("gained", style.text(sentence))),
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
    ...changeSections(namespace, style, whereIfSeveral),
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
        ({ widens, exception, declaredEarlier, ...object }) =>
          `${unmanagedTitle(object, style)}${declaredEarlier ? ", declared by this stack earlier" : ""}${widens.length > 0 ? `: ${style.text(widens.join("; "))}` : ""}${exception ? ` (excepted until ${exception.until}: ${style.text(exception.reason)})` : ""}`,
      ),
    },
    { title: `Limitations${where}`, items: [...notEvaluated, ...unknown].map(style.text) },
  ];
}

/** Returns a section for each list of changes, except changes to access. */
export const changeSections = (
  changes: Partial<OtherChanges>,
  style: ReportStyle,
  where: string,
): Section[] =>
  changeLists.map(({ list, title, sentence, marks }) => ({
    title: `${title}${where}`,
    items: changesIn(changes, list).map((change) => {
      const text = sentence(change, style);
      const mark = marks(change);
      return mark ? style.change(mark, text) : text;
    }),
  }));

/** Returns the sections of a review that concern the whole plan. */
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

/** The findings that the flags of the command allow. Allowed findings do not block a change. */
export interface Allowed {
  readonly allowLockout: boolean;
  readonly allowUnmanaged: boolean;
  /** True if missing permissions do not block the change, because the plan is applied with a different credential. */
  readonly allowMissingPermissions: boolean;
  readonly allowFindings: boolean;
  readonly allowIncomplete: boolean;
}

/** Returns the blocking findings of a review, as sentences. */
export function objections(review: Review, allowed: Allowed): string[] {
  // A review of two revisions does not block on unmanaged objects, because they are the same in both revisions.
  const allowUnmanaged = allowed.allowUnmanaged || review.revisions !== undefined;
  const ofNamespaces = review.namespaces.flatMap((namespace) => {
    const { name, lockouts, missingPermissions, tests, coverage, notEvaluated } = namespace;
    const locked = lockouts.map(({ message }) => message);
    const missing = missingPermissions.map(
      ({ reason, resources }) => `${reason}; required by ${resources.slice(0, 5).join(", ")}`,
    );
    const findings = [
      ...weakenedBy(namespace),
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
 * Returns the sentences about findings that block, with the flag that allows them at the end of each sentence. Returns
 * an empty list if the flag is set.
 */
const unless = (isAllowed: boolean, flag: string, sentences: readonly string[]): string[] =>
  isAllowed ? [] : sentences.map((sentence) => `${sentence} (allow with ${flag})`);

/**
 * Returns the new lint findings that block the change: errors, and warnings about unanchored patterns in keys and rules
 * through which logins gain access.
 */
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

/**
 * Returns the title of an unmanaged object, with the id that an exception in `access.ignore` needs: `PublicKey ana
 * (73:d4:…)`.
 */
const unmanagedTitle = (
  { kind, id, name }: Pick<UndeclaredObject, "kind" | "id" | "name">,
  style: Style,
): string => `${kind} ${style.name(name)}${name === id ? "" : ` (${style.text(id)})`}`;

const UNMANAGED_MAX = 10;

function wideningOf({ unmanaged }: NamespaceReview["coverage"]): string[] {
  const open = unmanaged
    .filter(({ widens, exception }) => widens.length > 0 && exception === undefined)
    .map(
      ({ widens, ...object }) =>
        `${unmanagedTitle(object, PLAIN)} is unmanaged and widens access: ${widens.join("; ")}`,
    );
  const more = open.length - UNMANAGED_MAX;
  const others = more > 0 ? [`${more} more unmanaged objects widen access`] : [];
  return [...open.slice(0, UNMANAGED_MAX), ...others];
}

/** Returns a sentence with the devices, keys, rules, logins and addresses for which access was evaluated. */
export function evaluatedSentence({ access, evaluated }: NamespaceReview, style: Style): string {
  if (!access) return "Access was not evaluated.";
  const { devices, keys, rules, principals, policies, sessions, logins, addresses } = evaluated;
  const { subject, object } = DECIDER_NOUNS[policies === undefined ? "legacy" : "identity"];
  const deciding = `${counted(principals ?? keys, ...subject)} and ${counted(policies ?? rules, ...object)}`;
  const counts = `${counted(devices, "device")}, ${deciding}`;
  const names = withOthers(logins, ANY_LOGIN, OTHER_LOGINS, style);
  const other = otherAddressOf(evaluated);
  const places = addresses.some((address) => address !== other)
    ? `addresses ${withOthers(addresses, other, OTHER_ADDRESSES, style)}`
    : "any address";
  const seen =
    sessions > 0 ? `, including logins and addresses of the latest ${counted(sessions, "session")}` : "";
  return `Evaluated for ${counts}; logins ${names}; ${places}${seen}.`;
}

const SHORT = 10;

/**
 * Returns a revision as part of a sentence: `origin/main (0123456789)`. If the given name is the id of the commit,
 * returns only the id.
 */
function revisionInWords({ name, commit }: Revision, style: Style): string {
  if (commit === null) return style.text(name);
  const id = style.name(commit.slice(0, SHORT));
  return commit.startsWith(name) ? id : `${style.name(name)} (${id})`;
}

/** Returns the compared revisions as part of a sentence: `origin/main (0123456789) to the working folder`. */
export const revisionsInWords = ({ base, head }: Revisions, style: Style): string =>
  `${revisionInWords(base, style)} to ${revisionInWords(head, style)}`;

/** Returns a sentence with the compared revisions, and with the differences that the review omits. */
export const revisionsSentence = (revisions: Revisions, style: Style): string =>
  `Changes from ${revisionsInWords(revisions, style)}${
    revisions.head.commit === null ? ", including uncommitted changes" : ""
  }. Other differences from the live namespace, such as drift and unapplied changes, are omitted.`;
