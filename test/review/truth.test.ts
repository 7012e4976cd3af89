import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { newCounts, roundsOf, TruthRound } from "./support/truth/TruthRound.ts";
import { TruthService } from "./support/truth/TruthService.ts";
import { TruthStack } from "./support/truth/TruthStack.ts";

// Compares reviews, drift reports and policy tests with the decisions of the service before and after each run. The
// service decides on its own data, and the test asks it as an SSH gateway does. So the test never compares the product
// with itself.

const { rounds, seed } = roundsOf(25);

let truth: TruthService;
beforeAll(async () => {
  truth = await TruthService.start();
});
afterAll(() => truth?.stop());

it(`agree with the decisions of the service in ${rounds} random rounds: reviews, drift reports and policy tests`, {
  tags: ["long"],
  timeout: 7_200_000,
}, async () => {
  const printed = vi.spyOn(console, "log").mockImplementation(() => {});
  const failed: string[] = [];
  const counts = newCounts();
  const started = performance.now();
  for (let index = 0; index < rounds; index += 1) {
    const engine = new TruthStack(`truth${seed + index}`, () => truth.env());
    const round = new TruthRound({ seed: seed + index, truth, engine, counts, movesClock: true });
    const log = await round.run();
    if (log !== undefined) failed.push(log);
  }
  printed.mockRestore();
  const seconds = Math.round((performance.now() - started) / 1000);
  console.log(
    `truth test: ${JSON.stringify({ rounds, seed, seconds, ...counts, differing: failed.length })}`,
  );
  expect(failed.join("\n\n")).toBe("");
  // Rounds without a comparison would prove nothing.
  expect(counts.compared).toBeGreaterThan(counts.reviews / 2);
});
