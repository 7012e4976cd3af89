import { alternativesOf, patternOf } from "./pattern.ts";

/** The entry of an access policy that matches every login name. */
export const EVERY_LOGIN = "*";

/** The patterns that match every login name. A login name has at least one character and no line break. */
const ANY = new Set(["", "^", "$", ".*", "^.*", ".*$", "^.*$", ".+", "^.+", ".+$", "^.+$"]);

/** The login names of a pattern, in the form that an access policy lists. */
export interface LoginNames {
  /** The names, or the single entry `*`. */
  readonly names: readonly string[];
  /** True if the pattern matches only these login names. */
  readonly isWhole: boolean;
}

/**
 * Returns the login names that a pattern contains as literals and also matches. For `^(dev1)$|deploy`, these are `dev1`
 * and `deploy`. The pattern also matches other names that contain `deploy`, but access policies cannot express them.
 */
export function loginNamesIn(pattern: string): LoginNames {
  if (ANY.has(pattern)) return { names: [EVERY_LOGIN], isWhole: true };
  const { literals, isComplete } = alternativesOf(pattern);
  const texts = new Set(literals.flatMap((one) => one.texts));
  const found = [...texts].filter((text) => text !== "" && patternOf(pattern)?.test(text));
  // A literal `*` is omitted: in an access policy, the name `*` would match every login.
  const names = found.filter((name) => name !== EVERY_LOGIN);
  const isWhole = isComplete && literals.every(({ kind }) => kind === "whole");
  return { names, isWhole: isWhole && names.length === found.length };
}

/** Returns true if an access policy lists exactly the login names that a pattern matches. */
export function areLoginsOf(logins: readonly string[], pattern: string): boolean {
  const { names, isWhole } = loginNamesIn(pattern);
  return (
    isWhole && names.every((name) => logins.includes(name)) && logins.every((one) => names.includes(one))
  );
}
