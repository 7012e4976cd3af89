import { type Edition, type Operation, operations } from "@gatehouse-access/sdk/contract";
import { beforeAll, describe, expect, test } from "vitest";
import { testApp, withSharedApp } from "./appOfTest.ts";
import { acceptedCallersOf, type Caller, callersOf, forgedHeaders } from "./matrix/callers.ts";
import { accessOf, expectedStatus, isServed } from "./matrix/expected.ts";
import { createFixture, type MatrixFixture } from "./matrix/fixture.ts";
import { type Id, requestOf, type Sent } from "./matrix/requests.ts";
import { type Answer, expectContract, headersOf, pathOf, type TestApp } from "./testApp.ts";

const ids = Object.keys(operations) as Id[];
/** Method and path of every operation, including alternative paths. */
const endpoints = ids.flatMap((id) =>
  [operations[id].path, ...operations[id].aliases].map((path) => `${operations[id].method} ${path}`),
);
const UNAUTHENTICATED = { message: "missing or malformed jwt or API token" };

/** Expected sizes of the matrix. Update these numbers when you add an operation, a path or a caller. */
const OPERATIONS = 132;
const PATHS = 140;
const CALLERS = 70;

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
   * Returns the requests to send for one caller and one path. Each value stands for one request: true if it has the
   * headers that only the edge may send.
   * @param nth the sum of the caller's number and the path's number
   */
  readonly requests: (caller: Caller, nth: number, id: Id) => readonly boolean[];
}

/**
 * Names of callers: one caller of each kind. These callers are enough for the other editions, which differ from the
 * cloud edition only in the operations that they serve.
 */
const KINDS = [
  "none",
  "lab: owner",
  "lab: observer",
  "lab: operator's key",
  "lab: administrator's workload",
  "lab: device",
];
const ofKinds = ({ name }: Caller) => (KINDS.includes(name) ? [false] : []);

const PARTS: readonly Part[] = [
  {
    // This edition serves every operation, so it is tested with the most callers: with all valid credentials, without a
    // credential, and with a fifth of the invalid credentials. Public operations are tested with a fifth of all
    // callers. The fifth differs between operations, so each credential is tested with some operations.
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
  // All editions handle the headers of the edge in the same way. Testing one edition is enough.
  { edition: "enterprise", requests: () => [false, true] },
  { edition: "cloud", requests: () => [false] },
];

describe.each(PARTS)("on the $edition edition", expectTable);
// These tests send about seven thousand requests for each edition.
describe.each(WHOLE)(
  "on the $edition edition, for all operations and callers,",
  { tags: ["long"] },
  expectTable,
);

function expectTable({ edition, requests }: Part): void {
  let fixture: MatrixFixture;
  let callers: Caller[];
  const requested = { endpoints: new Set<string>(), callers: new Set<string>() };

  const app = withSharedApp({ edition });
  beforeAll(async () => {
    fixture = await createFixture(app);
    callers = await callersOf(fixture);
  });

  /** Counts the entries of the lab's audit trail. Rejected requests must not change this count. */
  const changes = () => app.services.db.auditEntry.count({ where: { tenantId: fixture.lab.tenant } });

  /** The fixture for requests that end only the caller's access. All these requests share it. */
  let spare: Promise<MatrixFixture> | undefined;

  /**
   * Returns another fixture and the caller of the same name in it, for a request that deletes something or ends the
   * caller's access. The main fixture then stays unchanged.
   */
  async function elsewhere(caller: Caller, ends: "something" | "caller"): Promise<[MatrixFixture, Caller]> {
    if (ends === "caller") spare ??= createFixture(app);
    const fresh = await (ends === "caller" && spare ? spare : createFixture(app));
    const same = (await acceptedCallersOf(fresh)).find(({ name }) => name === caller.name);
    if (same === undefined) throw new Error(`no caller ${caller.name}`);
    return [fresh, same];
  }

  /**
   * Sends the request for one cell of the matrix. If the response is wrong, returns a description of the error;
   * otherwise undefined.
   */
  async function cell(id: Id, path: string, caller: Caller, forged: boolean): Promise<string | undefined> {
    const operation: Operation = operations[id];
    const sent = requestOf(fixture, id);
    const expected = expectedStatus(fixture, id, sent, caller, edition);
    const [where, who] = sent.ends && expected < 300 ? await elsewhere(caller, sent.ends) : [fixture, caller];
    const headers = forged ? forgedHeaders(where) : {};
    const request = requestOf(where, id);
    const answer = await send(app, operation, path, request, { ...request, ...who.credentials, headers });
    const refused = answer.status === 401 && JSON.stringify(answer.body) !== JSON.stringify(UNAUTHENTICATED);
    if (answer.status !== expected || refused) {
      return `${path}, ${caller.name}${forged ? ", forged headers" : ""}: ${answer.status}, not ${expected}: ${answer.text}`;
    }
    if (isServed(id, edition)) expectContract(operation, answer);
    return undefined;
  }

  test.each(ids)("%s accepts exactly the callers that the rules allow", async (id) => {
    const before = await changes();
    const wrong: string[] = [];
    for (const path of [operations[id].path, ...accessOf(id).aliases]) {
      const endpoint = `${operations[id].method} ${path}`;
      for (const [number, caller] of callers.entries()) {
        for (const forged of requests(caller, endpoints.indexOf(endpoint) + number, id)) {
          requested.endpoints.add(endpoint);
          requested.callers.add(caller.name);
          const fault = await cell(id, path, caller, forged);
          if (fault !== undefined) wrong.push(fault);
        }
      }
    }
    expect(wrong).toEqual([]);
    expect(await changes()).toBe(before);
  });

  test("requests every path, as every caller", () => {
    expect(requested.endpoints).toEqual(new Set(endpoints));
    const expected = requests === ofKinds ? KINDS : callers.map(({ name }) => name);
    expect([...requested.callers].sort()).toEqual([...expected].sort());
  });
}

test("the matrix has every operation, path and caller", async () => {
  expect([ids.length, endpoints.length]).toEqual([OPERATIONS, PATHS]);
  const app = await testApp();
  expect(await callersOf(await createFixture(app))).toHaveLength(CALLERS);
});
