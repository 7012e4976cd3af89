import { setImmediate as nextTurn } from "node:timers/promises";
import { beforeEach, expect, test } from "vitest";
import { type Decision, DecisionTurns } from "../../../server/DecisionTurns.ts";

class Busy extends Error {}

let now = 0;
let log: string[] = [];
let turns: DecisionTurns;
beforeEach(() => {
  now = 0;
  log = [];
  turns = new DecisionTurns(
    () => new Busy(),
    () => now,
  );
});

/** A decision of several steps. Each step takes the same time and is logged. */
function* decision(name: string, steps: number, milliseconds: number): Decision<string> {
  for (let step = 1; step <= steps; step += 1) {
    now += milliseconds;
    log.push(name);
    yield;
  }
  return name;
}

test("a short decision ends in the same turn", async () => {
  const ended = turns.run("a", decision("a", 2, 0.1));
  expect(log).toEqual(["a", "a"]);
  expect(await ended).toBe("a");
});

test("other work runs between the slices of a decision, and after a long step for several turns", async () => {
  const ended = turns.run("a", decision("a", 2, 12));
  let isEnded = false;
  void ended.then(() => {
    isEnded = true;
  });
  while (!isEnded) {
    log.push("other");
    await nextTurn();
  }
  const between = log.slice(log.indexOf("a") + 1, log.lastIndexOf("a"));
  expect(between).toEqual(["other", "other", "other", "other"]);
});

test("a slice contains steps of several milliseconds in total", async () => {
  const ended = turns.run("a", decision("a", 9, 1));
  expect(log).toEqual(["a", "a", "a"]);
  await nextTurn();
  expect(log).toHaveLength(6);
  await ended;
  expect(log).toHaveLength(9);
});

test("owners take turns, and the decisions of an owner run one after the other", async () => {
  const all = [
    turns.run("a", decision("a1", 3, 3)),
    turns.run("a", decision("a2", 3, 3)),
    turns.run("b", decision("b", 3, 3)),
  ];
  expect(await Promise.all(all)).toEqual(["a1", "a2", "b"]);
  // The end of a decision is a step too.
  expect(log).toEqual(["a1", "a1", "b", "a1", "b", "b", "a2", "a2", "a2"]);
});

test("too many waiting decisions of an owner are refused, without a loss for other owners", async () => {
  const waiting = Array.from({ length: 200 }, () => turns.run("a", decision("a", 2, 4)));
  expect(() => turns.run("a", decision("a", 1, 1))).toThrow(Busy);
  const other = turns.run("b", decision("b", 1, 1));
  expect(await other).toBe("b");
  expect(log.filter((name) => name === "a").length).toBeLessThan(5);
  expect(await Promise.all(waiting)).toHaveLength(200);
  expect(await turns.run("a", decision("later", 1, 1))).toBe("later");
});

test("an error ends only its decision", async () => {
  // biome-ignore lint/correctness/useYield: the decision fails in its first step
  function* failing(): Decision<string> {
    throw new Error("broken");
  }
  const after = decision("after", 1, 1);
  await expect(turns.run("a", failing())).rejects.toThrow("broken");
  expect(await turns.run("a", after)).toBe("after");
});
