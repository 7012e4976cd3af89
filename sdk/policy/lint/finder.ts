import type { DeviceFilter } from "../keyAdmits.ts";
import { patternOf } from "../pattern.ts";

/** What a pattern is about. */
export type Subject = "login" | "address" | "device";

/** Tells whether a pattern is found in a text. */
export type Finder = (text: string) => boolean;

/** The test of a pattern; undefined when it does not compile. */
export const finderOf = (pattern: string): Finder | undefined => patternOf(pattern)?.test;

const LETTERS = [..."abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"];

/** Texts with nothing in common: a pattern that is found in all of them is found in every text. */
const PROBES: Readonly<Record<Subject, readonly string[]>> = {
  login: [...LETTERS, ".", "@", "root", "ana.reis@example.com"],
  address: [
    "192.0.2.1",
    "10.255.3.46",
    "87.87.87.87",
    "2001:db8::1",
    "::",
    "fe::",
    "fe80::abcd:ef01:2345:6789",
  ],
  device: [...LETTERS, "web-1", "00-1b-44-11-3a-b7"],
};

/**
 * True when a pattern is found in every text.
 * @param broken the answer for a pattern that does not compile
 */
export function isEverything(pattern: string, subject: Subject, broken: boolean): boolean {
  const finds = finderOf(pattern);
  return finds ? PROBES[subject].every(finds) : broken;
}

/**
 * True when a filter is for every device that there can be.
 * @param broken the answer for a pattern that does not compile
 */
export function isEveryDevice({ hostname, tags }: DeviceFilter, broken: boolean): boolean {
  return hostname ? isEverything(hostname, "device", broken) : !tags?.length;
}
