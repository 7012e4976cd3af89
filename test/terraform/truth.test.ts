import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { newCounts, roundsOf, TruthRound } from "../review/support/truth/TruthRound.ts";
import { TruthService } from "../review/support/truth/TruthService.ts";
import { testFolder } from "../support/folder.ts";
import { TerraformTruth } from "./support/TerraformTruth.ts";
import {
  type AttachedProvider,
  hasTerraform,
  LABEL,
  RootModule,
  startProvider,
} from "./support/terraform.ts";

// The rounds of test/review/truth.test.ts, with the plans and applies of Terraform.

const { rounds, seed } = roundsOf(4);

describe.runIf(hasTerraform)(`the plans of ${LABEL}`, () => {
  let truth: TruthService;
  let provider: AttachedProvider;
  beforeAll(async () => {
    truth = await TruthService.start();
    provider = await startProvider(truth.fleet.env);
  });
  afterAll(async () => {
    await provider?.stop();
    await truth?.stop();
  });

  it(`agree with the decisions of the service in ${rounds} random rounds`, {
    tags: ["long"],
    timeout: 7_200_000,
  }, async () => {
    const failed: string[] = [];
    const counts = newCounts();
    const started = performance.now();
    for (let index = 0; index < rounds; index += 1) {
      const root = new RootModule(testFolder(), { ...provider.env, ...truth.fleet.env });
      const engine = new TerraformTruth(root, truth);
      const round = new TruthRound({ seed: seed + index, truth, engine, counts, movesClock: false });
      const log = await round.run();
      if (log !== undefined) failed.push(log);
    }
    const seconds = Math.round((performance.now() - started) / 1000);
    console.log(
      `truth test with Terraform: ${JSON.stringify({ rounds, seed, seconds, ...counts, differing: failed.length })}`,
    );
    expect(failed.join("\n\n")).toBe("");
    expect(counts.compared).toBeGreaterThan(counts.reviews / 2);
  });
});
