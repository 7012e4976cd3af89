// What the Pulumi CLI and the plugin said to each other is recorded in `recorded`, so that the plugin is held to it
// also where there is no CLI. To record anew, after a scenario or what the plugin answers has changed, with a CLI on
// the PATH that finds its language host for YAML:
//
//   GATEHOUSE_RECORD=1 npx vitest run test/plugin/replay.test.ts
import { describe, expect, test, vi } from "vitest";
import { record } from "./recording/record.ts";
import { readRecording, writeRecording } from "./recording/recording.ts";
import { replay } from "./recording/replay.ts";
import { scenarios } from "./recording/scenarios.ts";

const isRecording = Boolean(process.env.GATEHOUSE_RECORD);
// Each has a process for every command, and the scenarios share the machine's cores.
vi.setConfig({ testTimeout: isRecording ? 600_000 : 180_000 });

describe.skipIf(!isRecording)("recording", () => {
  test.each(scenarios.map((scenario) => [scenario.name, scenario] as const))("%s", async (name, scenario) => {
    writeRecording(name, await record(scenario));
  });
});

describe("the plugin answers the Pulumi CLI as recorded", () => {
  for (const scenario of scenarios) {
    const { name } = scenario;
    // The life of all resources stands for the others in the run of every day.
    test.concurrent(name, { tags: name === "life" ? [] : ["long"] }, async () => {
      const recording = readRecording(name);
      expect(recording.steps).toHaveLength(scenario.steps.length);
      await replay(scenario, recording);
    });
  }
});
