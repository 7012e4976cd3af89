import { expect, test } from "vitest";
import { type Decision, DecisionTurns } from "../../../server/DecisionTurns.ts";
import { BusyError } from "../../../server/errors.ts";

/** A clock that advances by a millisecond with each step of a decision. */
function steppingClock() {
  let time = 0;
  const began: string[] = [];
  /** Returns a decision of several steps of a millisecond each. */
  function* decision<T>(name: string, steps: number, result: T): Decision<T> {
    for (let step = 0; step < steps; step += 1) {
      began.push(name);
      time += 1;
      yield;
    }
    return result;
  }
  return { began, decision, now: () => time };
}

/** Returns the names that were added to a list, by turn of the event loop, until a promise resolves. */
async function turnsUntil(names: string[], end: Promise<unknown>): Promise<string[]> {
  const turns = [names.splice(0).join("")];
  let hasEnded = false;
  void end.then(() => {
    hasEnded = true;
  });
  while (!hasEnded) {
    await new Promise<void>((resolve) => setImmediate(resolve));
    const turn = names.splice(0).join("");
    if (turn !== "") turns.push(turn);
  }
  return turns;
}

test("runs a short decision at once, and a long one in slices of 3 milliseconds", async () => {
  const { now, decision, began } = steppingClock();
  const turns = new DecisionTurns(now);
  const short = turns.run("a", decision("s", 2, "short"));
  expect(began.splice(0)).toEqual(["s", "s"]);
  expect(await short).toBe("short");
  const long = turns.run("a", decision("l", 100, "long"));
  const slices = await turnsUntil(began, long);
  expect(await long).toBe("long");
  expect(slices.join("")).toBe("l".repeat(100));
  expect(slices.filter((slice) => slice.length > 3)).toEqual([]);
});

test("owners take turns, whatever the number and the length of their decisions", async () => {
  const { now, decision, began } = steppingClock();
  const turns = new DecisionTurns(now);
  const many = Array.from({ length: 10 }, () => turns.run("a", decision("a", 50, undefined)));
  const other = turns.run("b", decision("b", 6, "b"));
  await turnsUntil(began, other).then((slices) => {
    expect(slices.join("").match(/b/g)).toHaveLength(6);
    // The other owner needs three slices. Before each, it waits for one slice of the first owner, which began earlier.
    expect(slices.join("").match(/a/g)?.length).toBeLessThanOrEqual(15);
  });
  await Promise.all(many);
});

test("decisions of an owner run in order", async () => {
  const { now, decision, began } = steppingClock();
  const turns = new DecisionTurns(now);
  const ends = ["x", "y", "z"].map((name) => turns.run("a", decision(name, 4, name)));
  await Promise.all(ends);
  expect(began.join("")).toBe("xxxxyyyyzzzz");
});

test("an owner has at most 200 decisions that wait, and other owners are not refused", async () => {
  const { now, decision } = steppingClock();
  const turns = new DecisionTurns(now);
  const all = Array.from({ length: 200 }, () => turns.run("a", decision("a", 10, undefined)));
  expect(() => turns.run("a", decision("a", 1, undefined))).toThrow(BusyError);
  expect(await turns.run("b", decision("b", 1, "decided"))).toBe("decided");
  await Promise.all(all);
  expect(await turns.run("a", decision("a", 1, "decided"))).toBe("decided");
});

test("an error ends only the decision that throws it", async () => {
  const { now, decision } = steppingClock();
  const turns = new DecisionTurns(now);
  function* failing(): Decision<never> {
    yield;
    throw new Error("broken");
  }
  const [failed, next] = [turns.run("a", failing()), turns.run("a", decision("a", 9, "decided"))];
  await expect(failed).rejects.toThrow("broken");
  expect(await next).toBe("decided");
});
