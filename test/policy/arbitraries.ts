import fc from "fast-check";
import type {
  AccessDevice,
  AccessKey,
  AccessRule,
  DeviceFilter,
  EvaluatedLogins,
  NamespacePolicy,
} from "../../sdk/policy/index.ts";

/**
 * Random policies that use few different names, so that many of their patterns match. The patterns contain only syntax
 * that the oracle and RE2 interpret in the same way.
 */

const NAMES = ["web-1", "web-2", "web", "db-1", "Web-1", "edge.lab", "1", "x"];
export const TAGS = ["prod", "lab", "edge", "Prod"];
export const LOGINS = ["root", "ana", "notroot", "Root", "ro", "deploy", "a.b", "axb", ""];
export const ADDRESSES = ["10.0.0.1", "10.0.1.1", "110.0.0.1", "192.0.2.1", "2001:db8::1", "::1"];

/** Patterns that do not compile. */
const BROKEN = ["(", ")", "[a", "*", "+a", "\\", "a**", "a{2,1}", "[z-a]", "(?=root)", "(a)\\1", "a{1001}"];

const escaped = (text: string) => text.replaceAll(/[\\^$.|?*+()[\]{}]/g, "\\$&");

const atom = fc.constantFrom(
  "r",
  "o",
  "a",
  "b",
  "1",
  "0",
  "-",
  ":",
  "web",
  "root",
  "ot",
  "10",
  "we",
  "an",
  "2001",
  "x",
  "\\.",
  "\\-",
  ".",
  "[a-z]",
  "[0-9]",
  "[^a]",
  "[^r0-9]",
  "[ro]",
  "[a-c.-]",
  "\\d",
  "\\w",
);
const quantifier = fc.constantFrom("*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,}", "{1}");
const optionalQuantifier = fc.oneof({ weight: 3, arbitrary: fc.constant("") }, quantifier);

const grammar = fc.letrec<{ branch: string; item: string; whole: string }>((tie) => ({
  item: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.tuple(atom, optionalQuantifier).map(([text, times]) => text + times),
    fc.constantFrom("^", "$", ".*"),
    fc
      .tuple(
        fc.constantFrom("(", "(?:"),
        fc.array(tie("branch"), { minLength: 1, maxLength: 3 }),
        optionalQuantifier,
      )
      .map(([open, branches, times]) => `${open}${branches.join("|")})${times}`),
  ),
  branch: fc.array(tie("item"), { maxLength: 3 }).map((items) => items.join("")),
  whole: fc.array(tie("branch"), { minLength: 1, maxLength: 2 }).map((branches) => branches.join("|")),
})).whole;

/** Patterns that users typically write: one or several names or parts of names, with and without anchors. */
const plain = (texts: readonly string[]) =>
  fc
    .tuple(
      fc.constantFrom("", "^"),
      fc.array(fc.constantFrom(...texts.filter((text) => text !== "")), { minLength: 1, maxLength: 3 }),
      fc.boolean(),
      fc.nat(4),
      fc.constantFrom("", "$", ".*", ".*$"),
    )
    .map(([start, some, grouped, cut, end]) => {
      const spelled = some.map((text) => escaped(cut === 0 ? text.slice(0, 3) : text));
      return grouped
        ? `${start}(${spelled.join("|")})${end}`
        : `${start}${spelled.join(`${end}|${start}`)}${end}`;
    });

/** Generates patterns, of which many match some of `texts`. One pattern in ten is empty or does not compile. */
export const patternOn = (texts: readonly string[]): fc.Arbitrary<string> =>
  fc.oneof(
    { weight: 10, arbitrary: plain(texts) },
    { weight: 5, arbitrary: grammar },
    { weight: 3, arbitrary: fc.constantFrom(".*", "^", ".", "$") },
    { weight: 1, arbitrary: fc.constant("") },
    { weight: 1, arbitrary: fc.constantFrom(...BROKEN) },
  );

const someTags = fc.uniqueArray(fc.constantFrom(...TAGS), { maxLength: 3 });

export const filter: fc.Arbitrary<DeviceFilter> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ hostname: patternOn(NAMES) }) },
  { weight: 4, arbitrary: fc.record({ tags: someTags }) },
  fc.record({ hostname: patternOn(NAMES), tags: someTags }),
  fc.constant({}),
);

/** A random device. */
export const deviceOf = (uid: string): fc.Arbitrary<AccessDevice> =>
  fc.record({ uid: fc.constant(uid), name: fc.constantFrom(...NAMES), tags: someTags });
const keyOf = (fingerprint: string): fc.Arbitrary<AccessKey> =>
  fc.record({
    fingerprint: fc.constant(fingerprint),
    name: fc.constantFrom("laptop", "phone"),
    username: patternOn(LOGINS),
    filter,
  });
const ruleOf = (id: string): fc.Arbitrary<AccessRule> =>
  fc.record({
    id: fc.constant(id),
    action: fc.constantFrom("allow", "deny"),
    active: fc.integer({ min: 0, max: 5 }).map((number) => number > 0),
    priority: fc.nat(3),
    sourceIp: patternOn(ADDRESSES),
    username: patternOn(LOGINS),
    filter,
  });

/**
 * Generates at most `most` objects with ids from a fixed sequence, so that two generated policies can contain objects
 * with the same id.
 */
export const someOf = <T>(
  most: number,
  name: string,
  make: (id: string) => fc.Arbitrary<T>,
): fc.Arbitrary<T[]> =>
  fc
    .tuple(
      ...Array.from({ length: most }, (_, index) =>
        fc.tuple(fc.integer({ min: 0, max: 3 }), make(`${name}${index}`)),
      ),
    )
    .map((all) => all.filter(([kept]) => kept > 0).map(([, one]) => one));

const policyOf = (devices: number): fc.Arbitrary<NamespacePolicy> =>
  fc.record({
    devices: someOf(devices, "device", deviceOf),
    keys: someOf(4, "key", keyOf),
    rules: someOf(6, "rule", ruleOf),
  });

/** A random policy. One in five has more devices than the number of bits in a word of a device set. */
export const policy: fc.Arbitrary<NamespacePolicy> = fc.oneof(
  { weight: 4, arbitrary: policyOf(6) },
  { weight: 1, arbitrary: policyOf(70) },
);

/** Returns a changed copy of a list: most objects stay, and the others are deleted, created or changed. */
export function changed<T>(
  old: readonly T[],
  others: readonly T[],
  idOf: (item: T) => string,
  dice: Iterator<number>,
): T[] {
  const byId = new Map(others.map((item) => [idOf(item), item]));
  const kept = old.flatMap((item) => {
    const throwOf = dice.next().value;
    if (throwOf === 0) return [];
    return [throwOf === 1 ? (byId.get(idOf(item)) ?? item) : item];
  });
  const known = new Set(old.map(idOf));
  return [...kept, ...others.filter((item) => !known.has(idOf(item)) && dice.next().value < 3)];
}

/** A random policy and a changed copy of it. */
export const changedPolicy: fc.Arbitrary<{ before: NamespacePolicy; after: NamespacePolicy }> = fc
  .oneof({ weight: 4, arbitrary: fc.constant(5) }, { weight: 1, arbitrary: fc.constant(70) })
  .chain((devices) => fc.tuple(policyOf(devices), policyOf(devices), fc.infiniteStream(fc.nat(5))))
  .map(([before, other, dice]) => ({
    before,
    after: {
      devices: changed(before.devices, other.devices, ({ uid }) => uid, dice),
      keys: changed(before.keys, other.keys, ({ fingerprint }) => fingerprint, dice),
      rules: changed(before.rules, other.rules, ({ id }) => id, dice),
    },
  }));

export const evaluated: fc.Arbitrary<EvaluatedLogins> = fc.record({
  logins: fc.subarray(LOGINS, { minLength: 1, maxLength: 5 }),
  addresses: fc.subarray(ADDRESSES, { minLength: 1, maxLength: 4 }),
});
