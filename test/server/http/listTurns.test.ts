import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ListTimes, ListTurns } from "../../../server/http/limits/ListTurns.ts";

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/**
 * Simulates list requests that are limited by {@link ListTurns}, on a simulated clock. By default, the event loop has
 * no other work.
 */
class World {
  time = 0;
  /**
   * The list requests that have begun since the last iteration of the event loop. Each text contains the owner and the
   * number of the request.
   */
  begun: string[] = [];
  readonly #turns: ListTurns;
  readonly #requested = new Map<string, number>();

  constructor(longest = 500) {
    this.#turns = new ListTurns(longest, () => this.time);
  }

  /** Sends a list request that takes the given time. Returns false if the request is rejected. */
  request(owner: string, milliseconds: number): boolean {
    const number = (this.#requested.get(owner) ?? 0) + 1;
    this.#requested.set(owner, number);
    return this.#turns.begin(owner, (end) => {
      this.begun.push(`${owner}${number}`);
      this.time += milliseconds;
      end();
    });
  }

  /**
   * Runs iterations of the event loop. In each iteration, other work takes `otherWork` milliseconds. For each
   * iteration, returns the list requests that began in it.
   */
  async turns(count: number, otherWork = 0): Promise<string[][]> {
    const turns: string[][] = [];
    for (let index = 0; index < count; index += 1) {
      this.time += otherWork;
      await turn();
      turns.push(this.begun.splice(0));
    }
    return turns;
  }
}

test("begins short lists immediately, for all owners", async () => {
  const world = new World();
  for (let index = 0; index < 16; index += 1)
    expect(world.request(index % 2 === 0 ? "a" : "b", 1)).toBe(true);
  expect(world.begun).toHaveLength(16);
});

test("delays lists after 50 ms of work, and begins one per turn, in order", async () => {
  const world = new World();
  for (let index = 0; index < 6; index += 1) world.request("a", 20);
  expect(world.begun.splice(0)).toEqual(["a1", "a2", "a3"]);
  const turns = await world.turns(10);
  expect(turns.filter((begun) => begun.length > 0)).toEqual([["a4"], ["a5"], ["a6"]]);
});

test("begins the waiting list of the owner whose lists took the least time recently", async () => {
  const world = new World();
  for (let index = 0; index < 8; index += 1) world.request("a", 50);
  world.request("b", 2);
  world.request("b", 2);
  const order = (await world.turns(20)).flat();
  expect(order.slice(0, 4)).toEqual(["a1", "b1", "b2", "a2"]);
  expect(order).toHaveLength(10);
});

test("gives other work as much time as a list that waited, and begins the next list if there is no other work", async () => {
  const requested = 100;
  const [busy, idle] = [new World(0), new World(0)];
  for (const world of [busy, idle]) for (let index = 0; index < requested; index += 1) world.request("a", 50);
  // In total, the other work takes one second: 200 iterations of 5 ms. Before each list request begins, the other work
  // gets 50 ms.
  const begun = (await busy.turns(200, 5)).flat().length;
  expect(begun).toBeGreaterThanOrEqual(18);
  expect(begun).toBeLessThanOrEqual(21);
  expect((await idle.turns(200)).flat()).toHaveLength(requested);
});

test("a list that does not end in the turn in which it began delays no other list", async () => {
  const turns = new ListTurns(1);
  let waiting = 0;
  for (let index = 0; index < 100; index += 1) {
    const accepted = turns.begin("a", async (end) => {
      waiting += 1;
      await turn();
      end();
    });
    expect(accepted).toBe(true);
    if (index % 10 === 9) await turn();
  }
  expect(waiting).toBe(100);
});

test("rejects an owner's lists while the owner's waiting lists would take too long", async () => {
  const world = new World();
  const answers: boolean[] = [];
  // Simulates sixteen clients. Each client sends its next request one iteration of the event loop after its last
  // request.
  for (let turns = 0; turns < 200; turns += 1) {
    answers.push(world.request("a", 50));
    while (answers.at(-1) && answers.length < 16) answers.push(world.request("a", 50));
    await world.turns(1);
  }
  expect(answers).toContain(false);
  expect(answers.lastIndexOf(true)).toBeGreaterThan(answers.indexOf(false));
  // The service still accepts list requests of another owner.
  for (let index = 0; index < 16; index += 1) expect(world.request("b", 2)).toBe(true);
});

const cost = fc.integer({ min: 0, max: 100 });
const owner = fc.constantFrom("a", "b", "c");
const step = fc.oneof(
  fc.record({ kind: fc.constant("request" as const), owner, cost }),
  fc.record({ kind: fc.constant("turn" as const), otherWork: fc.constantFrom(0, 1, 40) }),
);

test("begins each accepted list once, in its owner's order, with few lists per turn, for any sequence of requests", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 80 }), async (steps) => {
      const world = new World();
      const accepted: string[] = [];
      const slowest: Record<string, number> = {};
      const requested: Record<string, number> = {};
      const begun: string[] = [];
      let tookInTurn = 0;
      for (const one of steps) {
        if (one.kind === "turn") {
          begun.push(...(await world.turns(1, one.otherWork)).flat());
          tookInTurn = 0;
          continue;
        }
        const { owner, cost } = one;
        const before = world.time;
        requested[owner] = (requested[owner] ?? 0) + 1;
        const through = new Set([...begun, ...world.begun]);
        const waiting = accepted.filter((name) => name.startsWith(owner) && !through.has(name)).length;
        if (world.request(owner, cost)) accepted.push(`${owner}${requested[owner]}`);
        // The service rejects a list request only if this request and the owner's waiting requests may take more than
        // 500 ms in total.
        else expect((waiting + 1) * (slowest[owner] ?? 0)).toBeGreaterThan(500);
        slowest[owner] = Math.max(slowest[owner] ?? 0, cost);
        if (world.time > before) expect(tookInTurn).toBeLessThan(50);
        tookInTurn += world.time - before;
      }
      begun.push(...(await world.turns(200)).flat());
      expect(begun.toSorted()).toEqual(accepted.toSorted());
      for (const name of ["a", "b", "c"]) {
        expect(begun.filter((list) => list.startsWith(name))).toEqual(
          accepted.filter((list) => list.startsWith(name)),
        );
      }
    }),
    { numRuns: 50 },
  );
});

describe("the times of lists", () => {
  const list = fc.record({ owner, cost, pause: fc.integer({ min: 0, max: 20_000 }) });

  test("add up, halve their weight every five seconds, and belong to one owner", () => {
    fc.assert(
      fc.property(fc.array(list), (lists) => {
        const times = new ListTimes();
        let now = 0;
        const ended = lists.map(({ owner, cost, pause }) => {
          now += pause;
          times.add(owner, cost, now);
          return { owner, cost, at: now };
        });
        for (const name of ["a", "b", "c"]) {
          const own = ended.filter(({ owner }) => owner === name);
          const sum = own.reduce((total, { cost, at }) => total + cost * 2 ** ((at - now) / 5000), 0);
          expect(times.recent(name, now)).toBeCloseTo(sum, 6);
          expect(times.expected(name)).toBeLessThanOrEqual(Math.max(0, ...own.map(({ cost }) => cost)));
        }
      }),
    );
  });

  test("predict the time of the next list from the last lists, with little weight on a single slow list", () => {
    const times = new ListTimes();
    times.add("a", 160, 0);
    expect(times.expected("a")).toBe(10);
    for (let number = 0; number < 100; number += 1) times.add("a", 50, number);
    expect(times.expected("a")).toBeCloseTo(50, 0);
    expect(times.restedAt("a")).toBe(149);
  });

  test("are stored for a bounded number of owners", () => {
    const times = new ListTimes();
    for (let number = 0; number <= 10_000; number += 1) times.add(`owner ${number}`, 50, 0);
    expect([times.recent("owner 0", 0), times.recent("owner 1", 0)]).toEqual([0, 50]);
  });
});
