import { DOMParser } from "@xmldom/xmldom";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { acceptanceOf } from "../../provider/drift/acceptance.ts";
import type { DriftReport } from "../../provider/drift/driftReport.ts";
import { driftJunit } from "../../provider/drift/report/junit.ts";
import { driftedSentence } from "../../provider/drift/report/reports.ts";
import type { FieldChange, Step } from "../../provider/engine/index.ts";
import { definitionNamed } from "../../provider/namespace/liveObjects.ts";
import { PLAIN } from "../../provider/style.ts";
import { sshKeyLine } from "../provider/support/programs.ts";

const STYLE = { ...PLAIN, change: (_change: string, sentence: string) => sentence, test: () => [] };

const step = (
  kind: string,
  fields: readonly FieldChange[],
  inputs: Step["fields"][number]["new"] = {},
): Step => {
  const type = `gatehouse:index:${kind}`;
  const values = { inputs: inputs as Record<string, never>, outputs: {} };
  return { op: "update", urn: `urn:pulumi:test::fleet::${type}::x`, type, name: "x", fields, after: values };
};

describe("the suggestion of drift", () => {
  const suggested = (
    kind: string,
    fields: readonly FieldChange[],
    inputs?: Step["fields"][number]["new"],
  ) => {
    const changed = step(kind, fields, inputs);
    return acceptanceOf([changed], [], new Date(), { language: "typescript", steps: [changed] }).changes;
  };
  const key = { name: "ana", data: "x", username: "^root$", filter: { hostname: "^a$" } };

  test.each<[string, string, readonly FieldChange[], Step["fields"][number]["new"], string]>([
    [
      "the values that a program can declare",
      "PublicKey",
      [
        { path: "username", old: "^root$", new: ".*" },
        { path: "filter.hostname", old: "^a$" },
        { path: "filter.tags", new: ["prod"] },
      ],
      key,
      'PublicKey "x": username = ".*", omit filter.hostname, filter.tags = ["prod"]',
    ],
    [
      "to remove a resource whose list becomes empty",
      "DeviceTags",
      [{ path: "tags", old: ["web"], new: [] }],
      { device: "web-01", tags: ["web"] },
      'remove DeviceTags "x"',
    ],
    [
      "a repair if no program can declare the live value",
      "Member",
      [{ path: "role", old: "observer", new: "owner" }],
      { email: "ana@example.org", role: "observer" },
      "",
    ],
    [
      "a refresh if only the device has changed",
      "DeviceTags",
      [{ path: "deviceName", old: "web-01", new: "web-02", outputOnly: true }],
      { device: "web-01", tags: ["web"] },
      'DeviceTags "x": no change needed; update the state with gatehouse refresh',
    ],
    [
      "a repair if a value is secret",
      "PublicKey",
      [{ path: "username", old: "[secret]", new: "[secret]" }],
      { ...key, username: "[secret]" },
      'PublicKey "x": username cannot be shown; revert the drift with drift --repair',
    ],
  ])("is %s", (_what, kind, fields, inputs, line) => {
    const [suggestion] = suggested(kind, fields, inputs);
    if (kind !== "Member") return expect(suggestion).toBe(line);
    expect(suggestion).toMatch(
      /^Member "x": a program cannot declare this value \(Member\.role .*\); revert the drift with drift --repair$/,
    );
  });
});

test("suggests YAML for a program in YAML", () => {
  const changed = step("PublicKey", [{ path: "name", old: "a", new: "a $$b" }]);
  const declared = { data: sshKeyLine(""), username: "^root$", filter: { tags: ["prod"] } };
  const state = { ...declared, name: "c $$d" };
  const liveObject = { definition: definitionNamed("PublicKey"), id: "tenant/aa", name: "x", state };
  const by = { language: "yaml", steps: [changed] } as const;
  const { language, changes, program } = acceptanceOf([changed], [liveObject], new Date(), by);
  expect(language).toBe("yaml");
  // A program in YAML writes `$$` for a `$` before another `$`.
  expect(changes).toEqual(['PublicKey "x": name: "a $$$b"']);
  // Adds a number to the name, since the program already has a key "x".
  expect(parse(program)).toEqual({
    "x-2": {
      type: "gatehouse:PublicKey",
      properties: { ...declared, name: "c $$$d", adopt: true },
    },
  });
});

test("a sentence about drift contains the difference, also of a field that is not an input", () => {
  const { type, name } = step("PublicKey", []);
  const outputs = [{ path: "size", old: 1, new: 2, outputOnly: true }] as const;
  const known = { urn: "", op: "update", effects: [] } as const;
  expect(driftedSentence({ ...known, type: "test:index:Thing", name, fields: outputs }, STYLE)).toBe(
    "test:index:Thing x: size is 2 (declared 1)",
  );
  expect(driftedSentence({ ...known, type, name, fields: [] }, STYLE)).toBe(
    "PublicKey x: differs from its declaration",
  );
});

describe("the JUnit report", () => {
  /** True for a character of XML 1.0: https://www.w3.org/TR/xml/#charsets. The parser accepts other characters too. */
  const isXmlChar = (char: string) => {
    const code = char.codePointAt(0) ?? 0;
    if (code < 0x20) return code === 0x9 || code === 0xa || code === 0xd;
    return code <= 0xd7ff || (code >= 0xe000 && code <= 0xfffd) || code >= 0x10000;
  };
  const isXmlText = (text: string) => [...text].every(isXmlChar);

  /** Parses the test case of an expired API key with this name and this message. */
  function readBack(name: string, message: string) {
    const report = {
      project: "fleet",
      stack: "prod",
      drifted: [],
      unmanaged: [],
      unmanagedMode: "fail",
      notEvaluated: [],
      durationMs: 1500,
      expired: [],
      expiring: [{ tenant: "", name, expiresAt: "", message }],
    } as unknown as DriftReport;
    const xml = driftJunit(report, undefined, false);
    expect(isXmlText(xml)).toBe(true);
    const faults: string[] = [];
    const fault = (text: string) => faults.push(text);
    const { documentElement: suite } = new DOMParser({
      errorHandler: { warning: fault, error: fault, fatalError: fault },
    }).parseFromString(xml, "text/xml");
    expect(faults).toEqual([]);
    expect([suite.getAttribute("tests"), suite.getAttribute("failures")]).toEqual(["5", "1"]);
    const [failure] = Array.from(suite.getElementsByTagName("failure"));
    const testCase = failure?.parentNode as Element | undefined;
    return { name: testCase?.getAttribute("name"), message: failure?.getAttribute("message") };
  }

  test.each([
    ["NUL", "\u0000"],
    ["a backspace", "\u0008"],
    ["a vertical tab", "\u000b"],
    ["a form feed", "\u000c"],
    ["an escape sequence of a terminal", "\u001b"],
    ["the last control character", "\u001f"],
    ["a lone surrogate", "\ud800"],
    ["a noncharacter", "\uffff"],
  ])("replaces %s, which XML cannot contain", (_what, char) => {
    expect(readBack(`a${char}b`, `${char}[31mred`)).toEqual({
      name: "ApiKey a\ufffdb",
      message: "\ufffd[31mred",
    });
  });

  test("escapes markup, and keeps all other text", () => {
    const text = `<a b="c">&amp; 'd' ]]> é 🔑 \u{10ffff}`;
    expect(readBack(text, text)).toEqual({ name: `ApiKey ${text}`, message: text });
  });

  test("is well-formed XML if it contains any text", () => {
    const text = fc.string({ unit: "binary" });
    fc.assert(
      fc.property(text, text, (name, message) => {
        readBack(name, message);
      }),
      { numRuns: 50 },
    );
  });
});
