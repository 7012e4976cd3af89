import pc from "picocolors";
import { expect, test } from "vitest";
import { policyTestsText } from "../../provider/cli/policyTests.ts";
import type { PolicyCounterexample, PolicyTestResult } from "../../provider/policyTests/results.ts";

const textOf = (more: Partial<PolicyTestResult>) => {
  const passed = { name: "it", file: "a.policy.ts", line: 3, ok: true, failures: [], warnings: [] };
  return policyTestsText(
    pc.createColors(false),
    { ok: true, tests: [{ ...passed, durationMs: 1, ...more }] },
    "lab",
  );
};

/** A name with characters that reverse the text direction, move the cursor and start a new line. */
const HOSTILE = "a\u202eb\u001b[2Jc\nd";
const SHOWN = "a\\u{202e}b\\u{1b}[2Jc\\u{a}d";

const example: PolicyCounterexample = {
  login: HOSTILE,
  address: "10.0.0.1",
  device: { uid: "1", name: HOSTILE },
  key: { fingerprint: "aa:01", name: "ana\u2066" },
  rule: { id: HOSTILE, action: "allow", priority: 7 },
};

test("escapes characters of names that reverse the text, move the cursor or start a line", () => {
  const evaluated = { keys: 1, devices: 2, logins: [HOSTILE, "root"], addresses: [] };
  const failure = {
    message: "1 case is allowed",
    counterexamples: [example],
    cases: 1,
    evaluated: evaluated,
    line: 4,
  };
  const text = textOf({ name: HOSTILE, ok: false, failures: [{ ...failure, assertion: HOSTILE }] });
  expect(text.split("\n")).toEqual([
    `FAIL  ${SHOWN}  lab/a.policy.ts:3`,
    `       ${SHOWN}`,
    "       1 case is allowed:  lab/a.policy.ts:4",
    `         ${SHOWN} on ${SHOWN} from 10.0.0.1 with the key "ana\\u{2066}" (aa:01), by rule ${SHOWN} (allow, priority 7)`,
    `       evaluated 1 key and 2 devices, as ${SHOWN}, root, from nothing`,
    "1 failed",
  ]);
});

test("lists the first eight of many login names", () => {
  const logins = Array.from({ length: 10 }, (_, at) => `u${at}`);
  const evaluated = { keys: 0, devices: 1, logins, addresses: logins.slice(0, 8) };
  const failure = { message: "no", counterexamples: [], cases: 0, evaluated: evaluated, line: 4 };
  const eight = "u0, u1, u2, u3, u4, u5, u6, u7";
  expect(textOf({ ok: false, failures: [failure] }).split("\n")).toContain(
    `       evaluated 0 keys and 1 device, as ${eight} and 2 more, from ${eight}`,
  );
});

test("messages keep their line breaks, and other control characters are escaped", () => {
  const note = { message: "one\ntwo\u202e\r", line: 4 };
  const text = textOf({ warnings: [note, note], failures: [{ ...note, counterexamples: [], cases: 0 }] });
  expect(text.split("\n")).toEqual([
    "  ok  it (1 ms)  lab/a.policy.ts:3",
    "       one",
    "two\\u{202e}\\u{d}  lab/a.policy.ts:4",
    "       warning: one",
    "two\\u{202e}\\u{d}  lab/a.policy.ts:4",
    "       warning: one",
    "two\\u{202e}\\u{d}  lab/a.policy.ts:4",
    "1 passed, 2 warnings",
  ]);
});

test("prints the namespace above its tests", () => {
  const [first, second] = [
    { tenant: "id-1", name: HOSTILE },
    { tenant: "id-2", name: "id-2" },
  ] as const;
  const passed = { file: "a.policy.ts", line: 3, ok: true, failures: [], warnings: [], durationMs: 1 };
  const tests = [
    { ...passed, name: "one", namespace: first },
    { ...passed, name: "two", namespace: first },
    { ...passed, name: "one", namespace: second },
  ];
  expect(policyTestsText(pc.createColors(false), { ok: true, tests }, "").split("\n")).toEqual([
    `Tested the namespace ${SHOWN} (id-1):`,
    "  ok  one (1 ms)  a.policy.ts:3",
    "  ok  two (1 ms)  a.policy.ts:3",
    "Tested the namespace id-2:",
    "  ok  one (1 ms)  a.policy.ts:3",
    "3 passed",
  ]);
  expect(policyTestsText(pc.createColors(false), { ok: true, tests: [] }, "")).toBe("No policy test ran.");
});
