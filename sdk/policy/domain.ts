import { isIP } from "node:net";
import type { AccessDomain, AccessPolicy } from "./facts.ts";
import { samplesOf } from "./samples.ts";

/** A login name that every domain has, as most devices do. */
export const DEFAULT_LOGIN = "root";
/** A login name that stands for every one that no pattern names. */
export const ANY_LOGIN = "someone";
/** An address that stands for every one that no rule names: of a network for documentation (RFC 5737). */
export const ANY_ADDRESS = "192.0.2.1";

/** What a domain has beside what the patterns of the policies name. */
export interface DomainOptions {
  readonly logins?: readonly string[];
  readonly addresses?: readonly string[];
}

/** Ends that make an address of the begin of one, as a pattern on the first parts of addresses has it. */
const ENDS = ["", ".0.0.1", ".0.1", ".1", "0.0.1", "0.1", "1", ":1", "::1"];
/** What almost any character of an address may be: dots are often not escaped, and parts written as `.+`. */
const FILLERS = [".", "1"];

/**
 * What policies are to be evaluated for: {@link DEFAULT_LOGIN}, {@link ANY_LOGIN} and {@link ANY_ADDRESS}, what is asked
 * for, and what the patterns of their keys and rules name. What a pattern has that spells nothing (`[a-z]+`) is there
 * with one example.
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

/** The address that a text is, or begins; undefined where it does neither. */
export function addressFrom(begin: string): string | undefined {
  return ENDS.map((end) => begin + end).find((text) => isIP(text) !== 0);
}
