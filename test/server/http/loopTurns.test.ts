import { expect, test } from "vitest";
import { LoopTurns } from "../../../server/http/listener/HttpConnections.ts";

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/**
 * Waits until the given number of tasks has begun. Returns the tasks grouped by the event loop iteration in which they
 * began.
 */
async function turnsOf(begun: string[], count: number): Promise<string[][]> {
  const turns = [begun.splice(0)];
  for (let total = turns[0]?.length ?? 0; total < count; ) {
    await turn();
    const now = begun.splice(0);
    total += now.length;
    if (now.length > 0) turns.push(now);
  }
  return turns;
}

test("begins up to 32 tasks immediately, and then one task per turn, in order", async () => {
  const turns = new LoopTurns();
  const begun: string[] = [];
  for (let index = 0; index < 50; index += 1) turns.begin(false, () => begun.push(`${index}`));
  const [atOnce = [], ...later] = await turnsOf(begun, 50);
  expect(atOnce).toHaveLength(32);
  expect(later.every((works) => works.length === 1)).toBe(true);
  expect([...atOnce, ...later.flat()]).toEqual(Array.from({ length: 50 }, (_, index) => `${index}`));
  // If no task waits, a new task begins immediately.
  await turn();
  turns.begin(false, () => begun.push("next"));
  expect(begun).toEqual(["next"]);
});

test("begins four reads before each waiting write", async () => {
  const turns = new LoopTurns();
  const begun: string[] = [];
  for (let index = 0; index < 32; index += 1) turns.begin(false, () => {});
  for (let index = 0; index < 3; index += 1) turns.begin(false, () => begun.push("write"));
  for (let index = 0; index < 10; index += 1) turns.begin(true, () => begun.push("read"));
  const order = (await turnsOf(begun, 13)).flat().join(" ");
  expect(order).toBe("read read read read write read read read read write read read write");
});
