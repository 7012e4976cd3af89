import { isIP } from "node:net";
import type { AccessDomain, AccessPolicy } from "./facts.ts";
import { samplesOf } from "./samples.ts";

/** A login name that every domain has, as most devices do. */
export const DEFAULT_LOGIN = "root";
/** A login name that stands for every one that no pattern names. */
export const ANY_LOGIN = "someone";
/** An address that stands for every one that no rule names: of a network for documentation (RFC 5737). */
export const ANY_ADDRESS = "192.0.2.1";

/** What a domain holds beside what the patterns of the policies name. */
export interface DomainOptions {
  /**
   * Login names.
   * @default []
   */
  readonly logins?: readonly string[];
  /**
   * Client addresses.
   * @default []
   */
  readonly addresses?: readonly string[];
}

/** Ends that make an address of its beginning; patterns often spell only the first parts of addresses. */
const ENDS = ["", ".0.0.1", ".0.1", ".1", "0.0.1", "0.1", "1", ":1", "::1"];
/** What stands for any character in a pattern on addresses: dots are often not escaped, and parts written as `.+`. */
const FILLERS = [".", "1"];

/**
 * The login names and addresses for which policies are evaluated: {@link DEFAULT_LOGIN}, {@link ANY_LOGIN} and
 * {@link ANY_ADDRESS}, those of the options, and those that the patterns of keys and rules spell. A part of a pattern
 * that spells no text, such as `[a-z]+`, gives one example.
 */
export function domainOf(policies: readonly AccessPolicy[], options: DomainOptions = {}): AccessDomain {
  const logins = new Set([DEFAULT_LOGIN, ANY_LOGIN, ...(options.logins ?? [])]);
  const addresses = new Set([ANY_ADDRESS, ...(options.addresses ?? [])]);
  const patterns = { logins: new Set<string>(), addresses: new Set<string>() };
  for (const { keys, rules } of policies) {
    for (const { username } of [...keys, ...rules]) patterns.logins.add(username);
    for (const { sourceIp } of rules) patterns.addresses.add(sourceIp);
  }
  for (const pattern of patterns.logins) for (const login of samplesOf(pattern)) logins.add(login);
  for (const pattern of patterns.addresses) {
    for (const sample of FILLERS.flatMap((filler) => samplesOf(pattern, filler))) {
      const address = addressFrom(sample);
      if (address !== undefined) addresses.add(address);
    }
  }
  return { logins: [...logins], addresses: [...addresses] };
}

/** The text as an address, completed where it is the beginning of one; undefined where it is neither. */
export function addressFrom(begin: string): string | undefined {
  return ENDS.map((end) => begin + end).find((text) => isIP(text) !== 0);
}
