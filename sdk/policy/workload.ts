import { ClaimPattern } from "./claimPattern.ts";

/** The claims of a token, as its issuer signed them. */
export type Claims = Readonly<Record<string, unknown>>;

function textsOf(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => (Array.isArray(item) ? [] : textsOf(item)));
  return ["string", "number", "boolean"].includes(typeof value) ? [String(value)] : [];
}

/** The claims of a token, prepared for comparisons with the required claims of many workloads. */
export class TokenClaims {
  readonly #claims: Claims;
  readonly #texts = new Map<string, ReadonlySet<string>>();

  constructor(claims: Claims) {
    this.#claims = claims;
  }

  /**
   * Returns the texts of a claim that are compared with the required value. Issuers send switches and numbers as text or
   * as JSON values. A list has a text for each of its values. An object or an absent claim has none.
   */
  texts(name: string): ReadonlySet<string> {
    const known = this.#texts.get(name);
    if (known !== undefined) return known;
    // A claim such as `constructor` must not be read from the prototype.
    const texts = new Set(Object.hasOwn(this.#claims, name) ? textsOf(this.#claims[name]) : []);
    this.#texts.set(name, texts);
    return texts;
  }

  /**
   * Returns the name of a required claim that the token lacks, or whose value does not match. Undefined if the token has
   * all required claims.
   * @param required the required values by claim name, with `*` and `**`
   */
  unmatched(required: Readonly<Record<string, string>>): string | undefined {
    const patterns = Object.entries(required).map(
      ([name, value]) => [name, new ClaimPattern(value)] as const,
    );
    // Comparisons with literal values take the least time, so they come first.
    const literal = patterns.filter(([, { isLiteral }]) => isLiteral);
    const others = patterns.filter(([, { isLiteral }]) => !isLiteral);
    return [...literal, ...others].find(([name, value]) => !value.matchesAny(this.texts(name)))?.[0];
  }
}

/** Returns the name of a required claim that a token lacks; see {@link TokenClaims.unmatched}. */
export const unmatchedClaim = (
  required: Readonly<Record<string, string>>,
  claims: Claims,
): string | undefined => new TokenClaims(claims).unmatched(required);
