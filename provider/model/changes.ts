import type { Style } from "../style.ts";
import type { NamespaceObjects } from "./namespaceObjects.ts";
import type { GainedRole } from "./roles.ts";

/**
 * A list of changes that reports show in addition to the gained and lost logins. For example, one list contains the
 * changed members.
 */
export interface ChangeList<C = unknown> {
  /** The name of the list in JSON reports. */
  readonly list: ListName;
  /** The title of the section in reports. */
  readonly title: string;
  /** The noun for one change in the title of a review: `API key change`. */
  readonly what: string;
  /**
   * The words that reports print before the sentence about a change, such as `API key `. Reports print them only among
   * sentences about other changes. Empty if the sentence needs no such words.
   */
  readonly subject: string;
  /** Returns the changes between two states of a namespace, in the order in which reports show them. */
  readonly between: (before: NamespaceObjects, after: NamespaceObjects) => readonly C[];
  /** Returns a sentence about a change. */
  readonly sentence: (change: C, style: Style) => string;
  /**
   * Returns the kind of a change, which reports show as a mark before the sentence. Returns undefined if reports show
   * no mark.
   */
  readonly marks: (change: C) => "gained" | "lost" | "altered" | undefined;
  /** Returns false if a change may give privileges that {@link roles} and {@link gains} do not contain. */
  readonly isLoss: (change: C) => boolean;
  /** Returns the roles that a change gives. */
  readonly roles: (change: C) => readonly GainedRole[];
  /** Returns the privileges other than roles that a change gives, as strings. */
  readonly gains: (change: C) => readonly string[];
  /** Returns true if a change weakens a protection, such as a setting of the namespace. */
  readonly weakens: (change: C) => boolean;
}

/** The names of the lists, in the order in which reports show them. */
export const LIST_NAMES = ["members", "workloads", "apiKeys", "settings", "privileges"] as const;

/** The name of a list of changes in JSON reports. */
export type ListName = (typeof LIST_NAMES)[number];

/**
 * Returns a list of changes, with defaults for the omitted functions. The result has no type parameter: reports pass to
 * the functions of a list only the changes that the same list returned.
 */
export const changeList = <C>(
  list: Pick<ChangeList<C>, "list" | "title" | "what" | "between" | "sentence"> & Partial<ChangeList<C>>,
): ChangeList =>
  ({
    subject: "",
    marks: () => undefined,
    isLoss: () => true,
    roles: () => [],
    gains: () => [],
    weakens: () => false,
    ...list,
  }) as ChangeList<C> as ChangeList;
