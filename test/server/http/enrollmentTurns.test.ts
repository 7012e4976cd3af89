import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { BusyError } from "../../../server/errors.ts";
import { type Enrolling, EnrollmentTurns } from "../../../server/http/limits/EnrollmentTurns.ts";

/** Number of enrollments that run at the same time. */
const TOGETHER = 16;

/** Turns whose pauses end on request. `begun` contains the names of the enrollments in the order in which they began. */
function controlled() {
  const begun: string[] = [];
  const pauses: number[] = [];
  let endPause = () => {};
  const turns = new EnrollmentTurns((milliseconds) => {
    pauses.push(milliseconds);
    return new Promise<void>((resolve) => {
      endPause = resolve;
    });
  });
  const sender = (tenantId: string, network: string, isKnown = false): Enrolling => ({
    tenantId,
    network,
    isKnown,
  });
  return {
    begun,
    pauses,
    enroll: (tenantId: string, network: string, isKnown = false) =>
      turns.run(sender(tenantId, network, isKnown), async () => void begun.push(`${tenantId} ${network}`)),
    run: <T>(work: () => Promise<T>) => turns.run(sender("any", "any"), work),
    /** Ends the pause. Returns the enrollments of the next group. */
    async nextGroup(): Promise<string[]> {
      begun.splice(0);
      endPause();
      await nextTurn();
      return begun.splice(0);
    },
  };
}

type Controlled = ReturnType<typeof controlled>;

/** Begins the first group, so that all further enrollments wait. */
async function occupy(turns: Controlled): Promise<void> {
  await turns.enroll("first", "first");
  await nextTurn();
  expect(turns.pauses).toHaveLength(1);
}

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index);

test("a single enrollment begins at once, and no other one begins before the pause has ended", async () => {
  const turns = controlled();
  await occupy(turns);
  const waiting = numbers(20).map((n) => turns.enroll("lab", `address-${n}`));
  await nextTurn();
  expect(turns.begun).toEqual(["first first"]);
  expect(await turns.nextGroup()).toHaveLength(TOGETHER);
  expect(turns.pauses).toHaveLength(2);
  expect(await turns.nextGroup()).toHaveLength(20 - TOGETHER);
  await Promise.all(waiting);
  expect(await turns.nextGroup()).toEqual([]);
  // Nothing waits, so the next enrollment begins at once.
  await turns.enroll("lab", "later");
  expect(turns.begun).toEqual(["lab later"]);
});

test.each<[what: string, other: string, flood: (turns: Controlled, n: number) => Promise<unknown>]>([
  ["one network to many namespaces", "namespace", (turns, n) => turns.enroll(`namespace-${n}`, "flooder")],
  ["many networks to one namespace", "namespace", (turns, n) => turns.enroll("victim", `flooder-${n}`)],
  ["one network to one namespace", "namespace", (turns) => turns.enroll("victim", "flooder")],
  ["one network", "network in the same namespace", (turns) => turns.enroll("lab", "flooder")],
])("a flood from %s delays the enrollment of another %s by less than a group", async (_, _other, flood) => {
  const turns = controlled();
  await occupy(turns);
  const flooding = numbers(200).map((n) => flood(turns, n));
  const ours = turns.enroll("lab", "office");
  expect(await turns.nextGroup()).toContain("lab office");
  await ours;
  for (let left = 200 - TOGETHER + 1; left > 0; left -= TOGETHER) await turns.nextGroup();
  await Promise.all(flooding);
});

test("refuses enrollments above the limits of a namespace and of a network, with Retry-After", async () => {
  const turns = controlled();
  await occupy(turns);
  const waiting = numbers(500).map(() => turns.enroll("lab", "flooder"));
  const refused = async (tenantId: string, network: string) => {
    const error = await turns.enroll(tenantId, network).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(BusyError);
    expect((error as BusyError).headers).toMatchObject({ "Retry-After": "2" });
  };
  await refused("lab", "flooder");
  waiting.push(turns.enroll("home", "flooder"));
  waiting.push(...numbers(500).map((n) => turns.enroll("lab", `office-${n}`)));
  await refused("lab", "another");
  waiting.push(turns.enroll("home", "another"));
  // Reports of enrolled devices have their own places.
  waiting.push(turns.enroll("lab", "another", true));
  for (let left = waiting.length; left > 0; left -= TOGETHER) await turns.nextGroup();
  await Promise.all(waiting);
});

test("a failed enrollment rejects for its caller alone", async () => {
  const turns = controlled();
  await occupy(turns);
  const [failed, done] = [
    turns.run(() => Promise.reject(new Error("refused"))),
    turns.run(async () => "enrolled"),
  ];
  const outcomes = Promise.allSettled([failed, done]);
  await turns.nextGroup();
  expect(await outcomes).toMatchObject([
    { status: "rejected", reason: new Error("refused") },
    { status: "fulfilled", value: "enrolled" },
  ]);
});
