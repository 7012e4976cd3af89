import { ClaimPattern } from "./claimPattern.ts";

/** The claims of a token: the named statements about a program that the issuer signed. */
export type Claims = Readonly<Record<string, unknown>>;

function textsOf(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => (Array.isArray(item) ? [] : textsOf(item)));
  return ["string", "number", "boolean"].includes(typeof value) ? [String(value)] : [];
}

/**
 * The claims of a token, in a form in which they can be compared quickly with the required claims of many workloads.
 */
export class TokenClaims {
  readonly #claims: Claims;
  readonly #texts = new Map<string, ReadonlySet<string>>();

  constructor(claims: Claims) {
    this.#claims = claims;
  }

  /**
   * Returns the strings of a claim that are compared with the required value. Issuers send booleans and numbers either
   * as strings or as JSON values. A list has one string for each of its values. An object or an absent claim has no
   * strings.
   */
  texts(name: string): ReadonlySet<string> {
    const known = this.#texts.get(name);
    if (known !== undefined) return known;
    // The value of a claim such as `constructor` must not come from the prototype.
    const texts = new Set(Object.hasOwn(this.#claims, name) ? textsOf(this.#claims[name]) : []);
    this.#texts.set(name, texts);
    return texts;
  }

  /**
   * Returns the name of a required claim that the token does not contain, or whose value does not match. Returns
   * undefined if the token matches all required claims.
   * @param required the required values by claim name, with the wildcards `*` and `**`
   */
  unmatched(required: Readonly<Record<string, string>>): string | undefined {
    const patterns = Object.entries(required).map(
      ([name, value]) => [name, new ClaimPattern(value)] as const,
    );
    // Literal values come first, since their comparison takes the least time.
    const literal = patterns.filter(([, { isLiteral }]) => isLiteral);
    const others = patterns.filter(([, { isLiteral }]) => !isLiteral);
    return [...literal, ...others].find(([name, value]) => !value.matchesAny(this.texts(name)))?.[0];
  }
}

/** Returns the name of a required claim that a token does not match; see {@link TokenClaims.unmatched}. */
export const unmatchedClaim = (
  required: Readonly<Record<string, string>>,
  claims: Claims,
): string | undefined => new TokenClaims(claims).unmatched(required);
