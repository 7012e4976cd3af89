import { type Edition, type Operation, operations } from "@gatehouse-access/sdk/contract";
import { beforeAll, describe, expect, test } from "vitest";
import { testApp, withSharedApp } from "./lab.ts";
import { acceptedCallersOf, type Caller, callersOf, forgedHeaders } from "./matrix/callers.ts";
import { accessOf, expectedStatus, isServed } from "./matrix/expected.ts";
import { type Id, requestsOf, type Sent } from "./matrix/requests.ts";
import { makeWorld, type World } from "./matrix/world.ts";
import { type Answer, expectContract, headersOf, pathOf, type TestApp } from "./testApp.ts";

const ids = Object.keys(operations) as Id[];
/** By method and path. */
const doors = ids.flatMap((id) =>
  [operations[id].path, ...operations[id].aliases].map((path) => `${operations[id].method} ${path}`),
);
const UNAUTHENTICATED = { message: "missing or malformed jwt or API token" };

/** What the matrix is made of; who adds an operation, a path or a caller counts anew. */
const OPERATIONS = 123;
const PATHS = 131;
const CALLERS = 55;

function send(app: TestApp, operation: Operation, path: string, sent: Sent, more: Sent): Promise<Answer> {
  const options = { ...sent, ...more };
  return app.send(operation.method, pathOf({ ...operation, path }, options), {
    headers: headersOf(options),
    ...(options.body !== undefined && { body: JSON.stringify(options.body) }),
  });
}

interface Part {
  readonly edition: Edition;
  /**
   * The requests that a cell of the table has: for each, whether it has the headers that only the edge may send.
   * @param nth the number of the caller and that of the path, together
   */
  readonly requests: (caller: Caller, nth: number, id: Id) => readonly boolean[];
}

/** One of each kind: editions differ in the operations that there are, not in whom they let in. */
const KINDS = ["none", "lab: owner", "lab: observer", "lab: operator's key", "lab: device"];
const ofKinds = ({ name }: Caller) => (KINDS.includes(name) ? [false] : []);

const PARTS: readonly Part[] = [
  {
    // Every operation is there. Each refuses a request without a credential, and some of those that are worth nothing;
    // each of these is refused by some of the operations. Of those that are open to everybody each lets some in.
    edition: "cloud",
    requests: ({ name, identity }, nth, id) => {
      const isSample = identity === null || accessOf(id).auth.includes("none");
      return isSample && name !== "none" && nth % 5 > 0 ? [] : [nth % 2 === 1];
    },
  },
  { edition: "community", requests: ofKinds },
  { edition: "enterprise", requests: ofKinds },
];
const WHOLE: readonly Part[] = [
  { edition: "community", requests: () => [false] },
  // The headers are the edge's business, which every edition has; one is enough.
  { edition: "enterprise", requests: () => [false, true] },
  { edition: "cloud", requests: () => [false] },
];

describe.each(PARTS)("on the $edition edition", expectTable);
// Some seven thousand requests for each edition.
describe.each(WHOLE)(
  "on the $edition edition, asked everything by everybody,",
  { tags: ["long"] },
  expectTable,
);

function expectTable({ edition, requests }: Part): void {
  let world: World;
  let callers: Caller[];
  const asked = { doors: new Set<string>(), callers: new Set<string>() };

  const app = withSharedApp({ edition });
  beforeAll(async () => {
    world = await makeWorld(app);
    callers = await callersOf(world);
  });

  /** Entries of the lab's audit trail: what refused requests must leave as it is. */
  const changes = () => app.services.db.auditEntry.count({ where: { tenantId: world.lab.tenant } });

  /** A world for the requests of which each ends its caller alone. */
  let spare: Promise<World> | undefined;

  /** The same caller in another world, for a request that ends something there. */
  async function elsewhere(caller: Caller, ends: "something" | "caller"): Promise<[World, Caller]> {
    if (ends === "caller") spare ??= makeWorld(app);
    const fresh = await (ends === "caller" && spare ? spare : makeWorld(app));
    const same = (await acceptedCallersOf(fresh)).find(({ name }) => name === caller.name);
    if (same === undefined) throw new Error(`no caller ${caller.name}`);
    return [fresh, same];
  }

  /** Sends one request; answers what is wrong with the answer, if anything. */
  async function cell(id: Id, path: string, caller: Caller, forged: boolean): Promise<string | undefined> {
    const operation: Operation = operations[id];
    const sent = requestsOf(world)[id];
    const expected = expectedStatus(world, id, sent, caller, edition);
    const [where, who] = sent.ends && expected < 300 ? await elsewhere(caller, sent.ends) : [world, caller];
    const headers = forged ? forgedHeaders(where) : {};
    const request = requestsOf(where)[id];
    const answer = await send(app, operation, path, request, { ...request, ...who.credentials, headers });
    const refused = answer.status === 401 && JSON.stringify(answer.body) !== JSON.stringify(UNAUTHENTICATED);
    if (answer.status !== expected || refused) {
      return `${path}, ${caller.name}${forged ? ", forged headers" : ""}: ${answer.status}, not ${expected}: ${answer.text}`;
    }
    if (isServed(id, edition)) expectContract(operation, answer);
    return undefined;
  }

  test.each(ids)("%s lets in whom the rules let in, and nobody else", async (id) => {
    const before = await changes();
    const wrong: string[] = [];
    for (const path of [operations[id].path, ...accessOf(id).aliases]) {
      const door = `${operations[id].method} ${path}`;
      for (const [number, caller] of callers.entries()) {
        for (const forged of requests(caller, doors.indexOf(door) + number, id)) {
          asked.doors.add(door);
          asked.callers.add(caller.name);
          const fault = await cell(id, path, caller, forged);
          if (fault !== undefined) wrong.push(fault);
        }
      }
    }
    expect(wrong).toEqual([]);
    expect(await changes()).toBe(before);
  });

  test("every path was asked, by every caller", () => {
    expect(asked.doors).toEqual(new Set(doors));
    const expected = requests === ofKinds ? KINDS : callers.map(({ name }) => name);
    expect([...asked.callers].sort()).toEqual([...expected].sort());
  });
}

test("the matrix has every operation, path and caller", async () => {
  expect([ids.length, doors.length]).toEqual([OPERATIONS, PATHS]);
  const app = await testApp();
  expect(await callersOf(await makeWorld(app))).toHaveLength(CALLERS);
});
