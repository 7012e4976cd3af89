import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { accessAnswer } from "../../provider/access/answer.ts";
import { type AccessFlags, accessInquiry } from "../../provider/access/inquiry.ts";
import type { NamespaceState } from "../../provider/namespace/namespaceState.ts";
import { readNamespace } from "../../provider/namespace/readNamespace.ts";
import { testLive } from "../../provider/review/testedNamespace.ts";
import { Connection } from "../../provider/service/connection.ts";
import { schemaFaults } from "../support/schemas.ts";
import { type PolicyWorld, startPolicyWorld } from "./support.ts";

const EXAMPLE = fileURLToPath(new URL("../../examples/fleet-access/access.policy.ts", import.meta.url));

let world: PolicyWorld;
let connection: Connection;
let estate: NamespaceState;
beforeAll(async () => {
  world = await startPolicyWorld();
  connection = new Connection(world.fleet.client);
  estate = await readNamespace(connection);
});
afterAll(() => world?.fleet.stop());

const printed = (flags: AccessFlags, accessUnknown?: string) =>
  JSON.parse([...accessAnswer(estate.with({ accessUnknown }), accessInquiry(flags, "json")).output].join(""));

describe("JSON output matches its schema, and modified output does not", () => {
  test("for the command access", () => {
    const report = printed({});
    expect(report.grants.length).toBeGreaterThan(0);
    expect(schemaFaults("access", report)).toEqual([]);
    const [grant, ...grants] = report.grants;
    expect(schemaFaults("access", { ...report, grants: [{ ...grant, rule: 7 }, ...grants] })).toEqual([
      "/grants/0/rule must be string,null",
      "/grants must be null",
      "/grants must match a schema in anyOf",
    ]);
  });

  test.each([
    ["access", "grants", {}],
    ["access-explanation", "allowed", { explain: true }],
  ] as const)("for the document %s about access that is not known", (file, field, flags) => {
    const report = printed(flags, "the reason");
    expect(report[field]).toBeNull();
    expect(schemaFaults(file, report)).toEqual([]);
    const { [field]: _omitted, ...others } = report;
    expect(schemaFaults(file, others)).toEqual([`must have required property '${field}'`]);
  });

  test("for explanations of allowed and denied logins", () => {
    for (const from of ["192.0.2.1", "203.0.113.9"]) {
      const explanation = printed({ explain: true, key: ["bob"], device: ["web-1"], from: [from] });
      expect(explanation.considered).toHaveLength(4);
      expect(schemaFaults("access-explanation", explanation)).toEqual([]);
      const { allowed, ...others } = explanation;
      expect(schemaFaults("access-explanation", { ...others, permitted: allowed })).toEqual([
        "must have required property 'allowed'",
        "must NOT have additional properties permitted",
      ]);
    }
  });

  test("for the results of policy tests", async () => {
    const folder = mkdtempSync(join(tmpdir(), "gatehouse-schemas-"));
    try {
      cpSync(EXAMPLE, join(folder, "access.policy.ts"));
      const tested = JSON.parse(JSON.stringify(await testLive(connection, folder)));
      expect(tested.ok).toBe(false);
      expect(tested.tests.flatMap(({ failures }: { failures: unknown[] }) => failures)).not.toEqual([]);
      expect(schemaFaults("policy-tests", tested)).toEqual([]);
      expect(schemaFaults("policy-tests", { ...tested, ok: "no" })).toEqual(["/ok must be boolean"]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
