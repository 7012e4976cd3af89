// Compares both engines in the same scenarios. comparison/recorded.json has the recorded outcomes of the Pulumi CLI, so
// the embedded engine can be tested without a CLI. With a CLI on the PATH, the recording itself is tested. To record it
// again after a change of a scenario or of the CLI's version:
//
//   GATEHOUSE_RECORD=1 npx vitest run test/engine/comparison.test.ts && npx biome check .
import { readFileSync, writeFileSync } from "node:fs";
import { afterAll, describe, expect, test, vi } from "vitest";
import { ENGINE_DIFFERENCES } from "../../provider/engine/engineDifferences.ts";
import { findOnPath } from "../../provider/engine/index.ts";
import { observe } from "./comparison/observe.ts";
import type { Scenario, StepResult } from "./comparison/scenario.ts";
import { scenarios } from "./comparison/scenarios.ts";

// Every run starts its own processes, which is slow on a busy machine.
vi.setConfig({ testTimeout: 600_000 });

const FILE = new URL("comparison/recorded.json", import.meta.url);
const recording = Boolean(process.env.GATEHOUSE_RECORD);
const recorded = JSON.parse(readFileSync(FILE, "utf8")) as Record<string, StepResult[]>;
const cli = findOnPath("pulumi", process.env);
const reason = cli ? "" : " (skipped: there is no pulumi on the PATH)";

const named = scenarios.map((scenario): [string, Scenario] => [scenario.name, scenario]);

/**
 * The scenarios for short runs: a failure, and the options that most change the steps. All other scenarios together take
 * minutes.
 */
const SHORT = [
  "aliases by name, parent and type",
  "deletedWith",
  "an object with a failed initialization",
  "protect",
  "ignoreChanges and replaceOnChanges",
  "replaceOnChanges",
];

function expected({ name, steps }: Scenario): StepResult[] {
  const outcomes = recorded[name];
  if (!outcomes) throw new Error(`nothing is recorded for "${name}": see the head of this file`);
  return outcomes.map((outcome, at) => steps[at]?.differs?.outcome(outcome) ?? outcome);
}

describe.skipIf(!cli)(`the recording matches the Pulumi CLI${reason}`, () => {
  test.each(named)("%s", async (_name, scenario) => {
    const outcomes = await observe(scenario, "cli");
    if (recording) recorded[scenario.name] = outcomes;
    expect(outcomes).toEqual(recorded[scenario.name]);
  });

  afterAll(() => {
    if (recording) writeFileSync(FILE, `${JSON.stringify(recorded, null, 1)}\n`);
  });
});

describe("the embedded engine matches the recording", () => {
  const compared = async (scenario: Scenario): Promise<void> => {
    expect(await observe(scenario, "embedded")).toEqual(expected(scenario));
  };

  test.each(named.filter(([name]) => SHORT.includes(name)))("%s", (_name, scenario) => compared(scenario));

  describe("in all other scenarios", { tags: ["long"] }, () => {
    test.each(named.filter(([name]) => !SHORT.includes(name)))("%s", (_name, scenario) => compared(scenario));
  });

  test("the scenarios of the short run exist", () => {
    expect(named.filter(([name]) => SHORT.includes(name))).toHaveLength(SHORT.length);
  });

  test("an intended difference exists and has a documented reason", () => {
    for (const { name, steps } of scenarios) {
      for (const [at, { differs }] of steps.entries()) {
        const outcome = recorded[name]?.[at];
        if (!differs || !outcome) continue;
        expect(ENGINE_DIFFERENCES.map(({ id }) => id)).toContain(differs.why);
        expect(differs.outcome(outcome)).not.toEqual(outcome);
      }
    }
  });
});
