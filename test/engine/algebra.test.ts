import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ignoreChanges } from "../../provider/engine/embedded/deploy/planResource.ts";
import { deletionBlockers } from "../../provider/engine/embedded/deploy/steps.ts";
import { fromStruct, toStruct } from "../../provider/engine/embedded/program/providerProcess.ts";
import { splitWords } from "../../provider/engine/embedded/program/sdkProcess.ts";
import { newCrypter, openCrypter, StateCodec } from "../../provider/engine/state/crypter.ts";
import { type ResourceState, topologicalOrder } from "../../provider/engine/state/resourceState.ts";
import {
  changedKeys,
  containsSecret,
  equal,
  fieldDiff,
  markSecrets,
  type Props,
  plainProps,
  secret,
  shown,
  type Value,
} from "../../provider/engine/value.ts";
import { makeUrn, urnName, urnType } from "../../provider/urn.ts";

const key = fc.stringMatching(/^[a-z]{1,6}$/);
const leaf = fc.oneof(
  fc.string(),
  fc.boolean(),
  fc.constant(null),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }).filter((n) => !Object.is(n, -0)),
);
const { plainValue, anyValue } = fc.letrec<{ plainValue: Value; anyValue: Value }>((tie) => ({
  plainValue: fc.oneof(
    { depthSize: "small" },
    leaf,
    fc.array(tie("plainValue"), { maxLength: 4 }),
    fc.dictionary(key, tie("plainValue"), { maxKeys: 4 }),
  ),
  anyValue: fc.oneof(
    { depthSize: "small" },
    leaf,
    fc.array(tie("anyValue"), { maxLength: 4 }),
    fc.dictionary(key, tie("anyValue"), { maxKeys: 4 }),
    tie("plainValue").map(secret),
  ),
}));
const props: fc.Arbitrary<Props> = fc.dictionary(key, anyValue, { maxKeys: 5 });
const plainOnly: fc.Arbitrary<Props> = fc.dictionary(key, plainValue, { maxKeys: 5 });

describe("values", () => {
  test("are unchanged after encoding for the provider and decoding", () => {
    fc.assert(
      fc.property(props, (p) => {
        expect(equal(fromStruct(toStruct(p)), p)).toBe(true);
      }),
    );
  });

  test("markSecrets marks exactly the previous secrets in plaintext values", () => {
    fc.assert(
      fc.property(props, (p) => {
        const marked = markSecrets(plainProps(p), p);
        expect(plainProps(marked)).toEqual(plainProps(p));
        for (const [name, value] of Object.entries(p))
          expect(containsSecret(marked[name])).toBe(containsSecret(value));
      }),
    );
  });

  test("shown() contains no secret", () => {
    const hidden = "swordfish";
    const withHidden = fc.dictionary(key, fc.oneof(anyValue, fc.constant(secret({ deep: [hidden] }))), {
      maxKeys: 5,
    });
    fc.assert(
      fc.property(withHidden, (p) => {
        expect(JSON.stringify(shown(p))).not.toContain(hidden);
      }),
    );
  });

  test("a diff is empty only without differences, and a reversed diff swaps old and new", () => {
    fc.assert(
      fc.property(plainOnly, plainOnly, (a, b) => {
        expect(fieldDiff(a, a)).toEqual([]);
        expect(fieldDiff(a, b).length === 0).toBe(equal(a, b));
        expect(changedKeys(a, b).length === 0).toBe(equal(a, b));
        const sorted = (changes: { path: string }[]) => changes.sort((x, y) => x.path.localeCompare(y.path));
        const reversed = fieldDiff(b, a).map(({ path, old, new: now }) => ({
          path,
          ...(now === undefined ? {} : { old: now }),
          ...(old === undefined ? {} : { new: old }),
        }));
        expect(sorted(fieldDiff(a, b))).toEqual(sorted(reversed));
      }),
    );
  });

  test("an ignored change keeps the old value", () => {
    fc.assert(
      fc.property(plainOnly, plainOnly, (a, b) => {
        expect(ignoreChanges(b, a, ["*"])).toEqual(a);
        for (const name of Object.keys(b)) expect(ignoreChanges(b, a, [name])[name]).toEqual(a[name]);
      }),
    );
  });
});

describe("the state", () => {
  test("is encrypted, opens only with the same passphrase, and stays identical without changes", async () => {
    const crypter = await newCrypter("one");
    await expect(openCrypter("two", crypter.saltText)).rejects.toMatchObject({ code: "passphrase" });
    const again = await openCrypter("one", crypter.saltText);
    fc.assert(
      fc.property(props, props, (inputs, outputs) => {
        const state: ResourceState = { urn: "urn", custom: true, type: "t", inputs, outputs };
        const stored = new StateCodec(crypter).encode(state);
        const codec = new StateCodec(again);
        const opened = codec.decode(stored);
        expect(equal(opened.inputs ?? {}, inputs) && equal(opened.outputs ?? {}, outputs)).toBe(true);
        expect(codec.encode(opened)).toEqual(stored);
      }),
    );
  });
});

/** Random resources. Each depends on some of the previous resources, in any order. */
const graph = fc.array(fc.array(fc.nat(20), { maxLength: 3 }), { maxLength: 12 }).chain((edges) => {
  const states = edges.map(
    (deps, i): ResourceState => ({
      urn: `u${i}`,
      custom: true,
      type: "t",
      dependencies: i === 0 ? [] : [...new Set(deps.map((d) => `u${d % i}`))],
    }),
  );
  return fc.shuffledSubarray(states, { minLength: states.length, maxLength: states.length });
});

describe("order", () => {
  test("places dependencies before their dependents, and keeps an order that is already valid", () => {
    fc.assert(
      fc.property(graph, (states) => {
        const ordered = topologicalOrder(states);
        expect(new Set(ordered)).toEqual(new Set(states));
        const at = new Map(ordered.map((state, i) => [state.urn, i]));
        for (const state of ordered) {
          for (const urn of state.dependencies ?? []) {
            expect(at.get(urn) as number).toBeLessThan(at.get(state.urn) as number);
          }
        }
        expect(topologicalOrder(ordered)).toEqual(ordered);
      }),
    );
  });

  test("deletions wait for exactly the deleted resources that depend on them", () => {
    fc.assert(
      fc.property(graph, fc.array(fc.boolean(), { minLength: 12, maxLength: 12 }), (states, keep) => {
        const condemned = states.filter((_, i) => keep[i]);
        for (const [state, before] of deletionBlockers(condemned)) {
          const expected = condemned.filter((other) => other.dependencies?.includes(state.urn));
          expect(new Set(before)).toEqual(new Set(expected));
        }
      }),
    );
  });
});

test("a URN contains the type and name of its resource", () => {
  const word = fc.stringMatching(/^[a-zA-Z0-9_-]{1,10}$/);
  fc.assert(
    fc.property(word, word, word, word, (stack, project, type, name) => {
      const parent = makeUrn(stack, project, "", "a:b:C", "p");
      const urn = makeUrn(stack, project, parent, `x:y:${type}`, name);
      expect([urnType(urn), urnName(urn)]).toEqual([`x:y:${type}`, name]);
      expect(urn).toContain("::a:b:C$x:y:");
    }),
  );
});

test("nodeargs are split like in a shell", () => {
  expect(splitWords(`--import tsx  --title "a b" 'c "d"' e\\ f ""`)).toEqual([
    "--import",
    "tsx",
    "--title",
    "a b",
    'c "d"',
    "e f",
    "",
  ]);
  expect(() => splitWords("'open")).toThrow(/A quote in the option nodeargs is not closed/);
  fc.assert(
    fc.property(fc.array(fc.string({ minLength: 1 })), (words) => {
      const quoted = words.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(" ");
      expect(splitWords(quoted)).toEqual(words);
    }),
  );
});
