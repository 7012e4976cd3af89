import { alternativesOf, patternOf } from "./pattern.ts";

/** The entry of an access policy that stands for every login name. */
export const EVERY_LOGIN = "*";

/** The patterns that match every login name. A login name is not empty and has one line. */
const ANY = new Set(["", "^", "$", ".*", "^.*", ".*$", "^.*$", ".+", "^.+", ".+$", "^.+$"]);

/** The login names of a pattern, as an access policy lists them. */
export interface LoginNames {
  /** The names, or the single entry `*`. */
  readonly names: readonly string[];
  /** True if the pattern matches no other login name. */
  readonly isWhole: boolean;
}

/**
 * Returns the login names that a pattern contains and matches. For `^(dev1)$|deploy`, these are `dev1` and `deploy`;
 * access policies cannot express the other names that contain `deploy`.
 */
export function loginNamesIn(pattern: string): LoginNames {
  if (ANY.has(pattern)) return { names: [EVERY_LOGIN], isWhole: true };
  const { literals, isComplete } = alternativesOf(pattern);
  const texts = new Set(literals.flatMap((one) => one.texts));
  const found = [...texts].filter((text) => text !== "" && patternOf(pattern)?.test(text));
  // In an access policy, the name `*` matches every login.
  const names = found.filter((name) => name !== EVERY_LOGIN);
  const isWhole = isComplete && literals.every(({ kind }) => kind === "whole");
  return { names, isWhole: isWhole && names.length === found.length };
}

/** Returns true if the logins of an access policy are exactly the login names that a pattern matches. */
export function areLoginsOf(logins: readonly string[], pattern: string): boolean {
  const { names, isWhole } = loginNamesIn(pattern);
  return (
    isWhole && names.every((name) => logins.includes(name)) && logins.every((one) => names.includes(one))
  );
}
