import { type Edition, type Operation, operations } from "@gatehouse-access/sdk/contract";
import { beforeAll, describe, expect, test } from "vitest";
import { postgresqlAddress } from "../../support/postgresql/database.ts";
import { withSharedApp } from "./lab.ts";
import { type Caller, callersOf, forgedHeaders } from "./matrix/callers.ts";
import { accessOf, expectedStatus, isServed } from "./matrix/expected.ts";
import { type Id, requestsOf, type Sent } from "./matrix/requests.ts";
import { makeWorld, type World } from "./matrix/world.ts";
import { type Answer, expectContract, headersOf, pathOf, type TestApp } from "./testApp.ts";

const ids = Object.keys(operations) as Id[];
const UNAUTHENTICATED = { message: "missing or malformed jwt or API token" };

/** What the matrix is made of; who adds an operation, a path or a caller counts anew. */
const OPERATIONS = 122;
const PATHS = 130;
const CALLERS = 55;

function send(app: TestApp, operation: Operation, path: string, sent: Sent, more: Sent): Promise<Answer> {
  const options = { ...sent, ...more };
  return app.send(operation.method, pathOf({ ...operation, path }, options), {
    headers: headersOf(options),
    ...(options.body !== undefined && { body: JSON.stringify(options.body) }),
  });
}

// Editions do not depend on the database: on the second one the edition with every operation is enough.
const EDITIONS: readonly Edition[] =
  postgresqlAddress() === undefined || process.env.GATEHOUSE_ALL
    ? ["community", "enterprise", "cloud"]
    : ["cloud"];

describe.each(EDITIONS)("on the %s edition", (edition) => {
  let world: World;
  let callers: Caller[];
  let cells = 0;

  const app = withSharedApp({ edition });
  beforeAll(async () => {
    world = await makeWorld(app);
    callers = await callersOf(world);
  });

  // The headers are the edge's business, which every edition has; one is enough.
  const variants = edition === "enterprise" ? [false, true] : [false];
  /** Entries of the lab's audit trail: what refused requests must leave as it is. */
  const changes = () => app.services.db.auditEntry.count({ where: { tenantId: world.lab.tenant } });

  /** The same caller in a world of its own, for a request that ends something there. */
  async function inFreshWorld(caller: Caller): Promise<[World, Caller]> {
    const fresh = await makeWorld(app);
    const same = (await callersOf(fresh)).find(({ name }) => name === caller.name);
    if (same === undefined) throw new Error(`no caller ${caller.name}`);
    return [fresh, same];
  }

  /** Sends one request; answers what is wrong with the answer, if anything. */
  async function cell(id: Id, path: string, caller: Caller, forged: boolean): Promise<string | undefined> {
    const operation: Operation = operations[id];
    const sent = requestsOf(world)[id];
    const expected = expectedStatus(world, id, sent, caller, edition);
    const [where, who] = sent.ends && expected < 300 ? await inFreshWorld(caller) : [world, caller];
    const headers = forged ? forgedHeaders(where) : {};
    const request = requestsOf(where)[id];
    const answer = await send(app, operation, path, request, { ...request, ...who.credentials, headers });
    cells += 1;
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
      for (const caller of callers) {
        for (const forged of variants) {
          const fault = await cell(id, path, caller, forged);
          if (fault !== undefined) wrong.push(fault);
        }
      }
    }
    expect(wrong).toEqual([]);
    expect(await changes()).toBe(before);
  });

  test("every operation, path and caller was asked", () => {
    expect(ids.length).toBe(OPERATIONS);
    expect(ids.flatMap((id) => [operations[id].path, ...operations[id].aliases]).length).toBe(PATHS);
    expect(callers.length).toBe(CALLERS);
    expect(cells).toBe(PATHS * CALLERS * variants.length);
  });
});
