import { RE2JS } from "re2js";
import { RecentlyUsed } from "./pattern.ts";

/** The claims of a token, as its issuer signed them. */
export type Claims = Readonly<Record<string, unknown>>;

const patterns = new RecentlyUsed<RE2JS>(1000);

/**
 * Compiles the required value of a claim. `*` matches any text without a slash, and `**` matches any text. All other
 * characters match themselves. The time of a match is linear, because RE2 does not backtrack.
 */
const patternOf = (required: string): RE2JS =>
  patterns.get(required, () => {
    const parts = required.split(/(\*+)/).map((part) => {
      if (!part.startsWith("*")) return RE2JS.quote(part);
      return part.length === 1 ? "[^/]*" : "(?s:.*)";
    });
    return RE2JS.compile(parts.join(""));
  });

function textsOf(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => (Array.isArray(item) ? [] : textsOf(item)));
  return ["string", "number", "boolean"].includes(typeof value) ? [String(value)] : [];
}

/**
 * Returns the texts of a claim that are compared with the required value. Issuers send switches and numbers as text or as
 * JSON values. A list has a text for each of its values. An object or an absent claim has none.
 */
export const claimTexts = (claims: Claims, name: string): string[] =>
  // A claim such as `constructor` must not be read from the prototype.
  Object.hasOwn(claims, name) ? textsOf(claims[name]) : [];

/**
 * Returns the name of a required claim that a token lacks, or whose value does not match. Undefined if the token has all
 * required claims.
 * @param required the required values by claim name, with `*` and `**`
 */
export function unmatchedClaim(
  required: Readonly<Record<string, string>>,
  claims: Claims,
): string | undefined {
  return Object.entries(required).find(
    ([name, value]) => !claimTexts(claims, name).some((text) => patternOf(value).matches(text)),
  )?.[0];
}
