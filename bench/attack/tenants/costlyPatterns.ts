/** Characters that no login name, device name, address or target of the attacks contains. */
const ABSENT = [..."!\"#%&'+,;<=>~"];
/** Largest number of repetitions in a pattern. With it, the pattern has almost the largest allowed size. */
const REPETITIONS = 320;

/**
 * Returns a pattern that is expensive to compile and to match, and matches none of the texts of the attacks. Patterns
 * with different numbers differ, so that no cache helps.
 */
export function costlyPattern(index: number): string {
  const { length } = ABSENT;
  const first = ABSENT[index % length] ?? "";
  const second = ABSENT[Math.floor(index / length) % length] ?? "";
  return `(?:.?){${REPETITIONS - (Math.floor(index / length ** 2) % 100)}}[${first}1][${second}!]`;
}

/**
 * Returns a pattern that is expensive to compile and to match, and matches the texts of the attacks. Patterns with
 * different numbers differ.
 */
export function costlyMatch(index: number): string {
  const { length } = ABSENT;
  const absent = `${ABSENT[index % length]}${ABSENT[Math.floor(index / length) % length]}`;
  return `^(?:[^${absent}]?){${REPETITIONS - (Math.floor(index / length ** 2) % 100)}}$`;
}

/** Returns a pattern of the largest allowed length, for lists of stored patterns. */
export const longPattern = (index: number): string => `^(?:${String(index).padStart(1018, "0")})$`;
