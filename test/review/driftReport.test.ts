import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { acceptanceOf } from "../../provider/drift/acceptance.ts";
import { driftedSentence } from "../../provider/drift/report/reports.ts";
import type { FieldChange, Step } from "../../provider/engine/index.ts";
import { definitionNamed } from "../../provider/estate/liveObjects.ts";
import { PLAIN } from "../../provider/review/report/sections.ts";
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

describe("what drift suggests", () => {
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
      "the values that a program can have",
      "PublicKey",
      [
        { path: "username", old: "^root$", new: ".*" },
        { path: "filter.hostname", old: "^a$" },
        { path: "filter.tags", new: ["prod"] },
      ],
      key,
      'PublicKey "x": username = ".*", leave out filter.hostname, filter.tags = ["prod"]',
    ],
    [
      "no resource where nothing is left of its list",
      "DeviceTags",
      [{ path: "tags", old: ["web"], new: [] }],
      { device: "web-01", tags: ["web"] },
      'remove DeviceTags "x"',
    ],
    [
      "a repair where no program can declare what was found",
      "Member",
      [{ path: "role", old: "observer", new: "owner" }],
      { email: "ana@example.org", role: "observer" },
      "",
    ],
    [
      "a refresh where the device alone has changed",
      "DeviceTags",
      [{ path: "deviceName", old: "web-01", new: "web-02", outputOnly: true }],
      { device: "web-01", tags: ["web"] },
      'DeviceTags "x": nothing to change; the state takes note of it by gatehouse refresh',
    ],
    [
      "a repair where a value is secret",
      "PublicKey",
      [{ path: "username", old: "[secret]", new: "[secret]" }],
      { ...key, username: "[secret]" },
      'PublicKey "x": username cannot be shown; undo it by drift --repair',
    ],
  ])("is %s", (_what, kind, fields, inputs, line) => {
    const [found] = suggested(kind, fields, inputs);
    if (kind !== "Member") return expect(found).toBe(line);
    expect(found).toMatch(
      /^Member "x": no program can declare this \(Member\.role: .*\); undo it by drift --repair$/,
    );
  });
});

test("what drift suggests for a program in YAML is YAML", () => {
  const changed = step("PublicKey", [{ path: "name", old: "a", new: "a $$b" }]);
  const declared = { data: sshKeyLine(""), username: "^root$", filter: { tags: ["prod"] } };
  const state = { ...declared, name: "c $$d" };
  const found = { definition: definitionNamed("PublicKey"), id: "tenant/aa", name: "x", state };
  const by = { language: "yaml", steps: [changed] } as const;
  const { language, changes, program } = acceptanceOf([changed], [found], new Date(), by);
  expect(language).toBe("yaml");
  // A program in YAML writes `$$` for a `$` before another one.
  expect(changes).toEqual(['PublicKey "x": name: "a $$$b"']);
  // The program's own key is "x".
  expect(parse(program)).toEqual({
    "x-2": {
      type: "gatehouse:PublicKey",
      properties: { ...declared, name: "c $$$d", adopt: true },
    },
  });
});

test("a sentence about drift says what differs, also where that is no input", () => {
  const { type, name } = step("PublicKey", []);
  const outputs = [{ path: "size", old: 1, new: 2, outputOnly: true }] as const;
  const known = { urn: "", op: "update", meaning: [] } as const;
  expect(driftedSentence({ ...known, type: "test:index:Thing", name, fields: outputs }, STYLE)).toBe(
    "test:index:Thing x: size is 2 (declared 1)",
  );
  expect(driftedSentence({ ...known, type, name, fields: [] }, STYLE)).toBe(
    "PublicKey x: is not as declared",
  );
});
