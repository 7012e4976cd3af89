// Puts both engines through the same scenarios. What the Pulumi CLI does is recorded in comparison/recorded.json, so
// that the embedded engine is held to it also where there is no CLI. With a CLI on the PATH the recording itself is
// tested. To record anew, after a scenario or the CLI's version has changed:
//
//   GATEHOUSE_RECORD=1 npx vitest run test/engine/comparison.test.ts && npx biome check .
import { readFileSync, writeFileSync } from "node:fs";
import { afterAll, describe, expect, test, vi } from "vitest";
import { ENGINE_DIFFERENCES } from "../../provider/engine/engineDifferences.ts";
import { findOnPath } from "../../provider/engine/index.ts";
import { observe } from "./comparison/observe.ts";
import type { Outcome, Scenario } from "./comparison/scenario.ts";
import { scenarios } from "./comparison/scenarios.ts";

// Every run starts processes of its own, which takes long where all cores are busy.
vi.setConfig({ testTimeout: 600_000 });

const FILE = new URL("comparison/recorded.json", import.meta.url);
const recording = Boolean(process.env.GATEHOUSE_RECORD);
const recorded = JSON.parse(readFileSync(FILE, "utf8")) as Record<string, Outcome[]>;
const cli = findOnPath("pulumi", process.env);
const why = cli ? "" : " (skipped: there is no pulumi on the PATH)";

const named = scenarios.map((scenario): [string, Scenario] => [scenario.name, scenario]);

/** The one with the most kinds of steps; the others are minutes of runs. */
const SHORT = ["deletion before replacement, by the provider, stopped in between"];

function expected({ name, steps }: Scenario): Outcome[] {
  const outcomes = recorded[name];
  if (!outcomes) throw new Error(`nothing is recorded for "${name}": see the head of this file`);
  return outcomes.map((outcome, at) => steps[at]?.differs?.outcome(outcome) ?? outcome);
}

describe.skipIf(!cli)(`the recording is what the Pulumi CLI does${why}`, () => {
  test.each(named)("%s", async (_name, scenario) => {
    const outcomes = await observe(scenario, "cli");
    if (recording) recorded[scenario.name] = outcomes;
    expect(outcomes).toEqual(recorded[scenario.name]);
  });

  afterAll(() => {
    if (recording) writeFileSync(FILE, `${JSON.stringify(recorded, null, 1)}\n`);
  });
});

describe("the embedded engine does what the Pulumi CLI does", () => {
  const compared = async (scenario: Scenario): Promise<void> => {
    expect(await observe(scenario, "embedded")).toEqual(expected(scenario));
  };

  test.each(named.filter(([name]) => SHORT.includes(name)))("%s", (_name, scenario) => compared(scenario));

  describe("in all else", { tags: ["long"] }, () => {
    test.each(named.filter(([name]) => !SHORT.includes(name)))("%s", (_name, scenario) => compared(scenario));
  });

  test("of the scenarios of the short run there is each", () => {
    expect(named.filter(([name]) => SHORT.includes(name))).toHaveLength(SHORT.length);
  });

  test("a difference that is meant is one, and says why", () => {
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
