import { type Operation, operations, type Role, takesIfMatch } from "@gatehouse-access/sdk/contract";
import { beforeAll, describe, expect, test } from "vitest";
import { withSharedApp } from "./appOfTest.ts";
import { forgedHeaders } from "./matrix/callers.ts";
import { accessOf } from "./matrix/expected.ts";
import { createFixture, type MatrixFixture } from "./matrix/fixture.ts";
import { bodyFor, createObjects, type NamespaceObjects, paramsFor } from "./matrix/objects.ts";
import { type Id, requestOf } from "./matrix/requests.ts";
import type { CallOptions, Credentials } from "./testApp.ts";

let fixture: MatrixFixture;
let ofLab: NamespaceObjects;
let ofElsewhere: NamespaceObjects;
// The cloud edition has all operations.
const app = withSharedApp({ edition: "cloud" });
beforeAll(async () => {
  // The clock stops, because the tests compare lists of the lab. The online state of devices in these lists depends on
  // the time.
  app.stopClock();
  fixture = await createFixture(app);
  ofLab = await createObjects(fixture, fixture.lab, "labonly");
  ofElsewhere = await createObjects(fixture, fixture.elsewhere, "elsewhereonly");
});

const ids = Object.keys(operations) as Id[];
const closed = ids.filter((id) => !accessOf(id).auth.includes("none"));
/** Operations whose path contains the caller's own user id. The namespace of the token has no effect on them. */
const OWN_ACCOUNT: readonly Id[] = ["updateUserData", "updateUserPassword"];
const namesOf = (id: Id) => accessOf(id).pathParams;
/** Operations whose path refers to an object of the credential's namespace. */
const byId = closed.filter(
  (id) => namesOf(id).length > 0 && !namesOf(id).includes("tenant") && !OWN_ACCOUNT.includes(id),
);
/** Operations whose path refers to a namespace. */
const byTenant = closed.filter((id) => namesOf(id).includes("tenant"));
const byTenantAndMember = byTenant.filter((id) => namesOf(id).includes("uid"));
/** Operations that list the objects of a namespace. */
const lists = closed.filter(
  (id) =>
    operations[id].method === "GET" &&
    (operations[id] as Operation).success.headers.includes("X-Total-Count") &&
    namesOf(id).length === 0,
);
/** Returns the minimum role for the operation. */
const roleFor = (id: Id) => (accessOf(id).minRole ?? "observer") as Role;
/** Operations that return 404 for any namespace of which the user is not a member (see the list of operations). */
const TOKENS: readonly Id[] = ["getToken", "getNamespaceToken", "acceptInvite"];

/** Returns credentials for namespaces other than the lab. One credential belongs to an administrator of the lab. */
function outsiders(): Record<string, Credentials> {
  const { elsewhere, guest } = fixture;
  return {
    "another namespace's owner": { token: elsewhere.owner.token },
    "another namespace's key": { apiKey: elsewhere.keys.get("owner") },
    "a member with a token for another namespace": { token: guest.token },
  };
}

/** Returns a request for an object of the lab. */
const aimedAtLab = (id: Id): CallOptions => ({
  ...requestOf(fixture, id),
  body: bodyFor(id, requestOf(fixture, id).body, ofLab),
  params: { tenant: fixture.lab.tenant, ...paramsFor(id, namesOf(id), ofLab) },
});

async function expectForOutsiders(id: Id, options: CallOptions, expected: (who: Credentials) => number) {
  for (const [name, who] of Object.entries(outsiders())) {
    for (const headers of [{}, forgedHeaders(fixture)]) {
      const { status, text } = await app.call(id, { ...options, ...who, headers });
      expect([name, status], text).toEqual([name, expected(who)]);
    }
  }
}

const forKinds = (id: Id, status: number) => (who: Credentials) =>
  accessOf(id).auth.includes(who.apiKey === undefined ? "jwt" : "apikey") ? status : 403;

/** Returns all lists of the lab, and the audit trail of the lab. */
async function stateOfLab(): Promise<string> {
  const { token, tenant } = fixture.lab.owner;
  const parts: string[] = [];
  for (const id of [...lists, "getAuditTrail"] as const) {
    const answer = await app.call(id, { token, params: { tenant }, query: { per_page: 100 } });
    expect(answer.status, id).toBe(200);
    parts.push(answer.text);
  }
  return parts.join("\n");
}

test("covers operations of every kind", () => {
  expect([byId.length, byTenant.length, byTenantAndMember.length, lists.length]).toEqual([48, 15, 2, 11]);
});

describe.each(byId)("%s", (id) => {
  test("finds the namespace's own object", async () => {
    const { token } = fixture.lab.owner;
    const reads = operations[id].method === "GET";
    // `If-Match` has a wrong revision. A write therefore returns 412 if it finds the object, and changes nothing.
    const headers: Record<string, string> = reads ? {} : { "if-match": '"another"' };
    const { status, text } = await app.call(id, { ...aimedAtLab(id), token, headers });
    // Programs cannot declare some objects. These objects have no revision, so writes ignore `If-Match`.
    // `connectorInfo` fails, because no container engine runs.
    const found = id === "connectorInfo" ? 500 : 200;
    expect(status, text).toBe(reads || !takesIfMatch(operations[id]) ? found : 412);
  });

  test("returns 404 to callers of another namespace", async () => {
    const before = await stateOfLab();
    await expectForOutsiders(id, aimedAtLab(id), forKinds(id, 404));
    expect(await stateOfLab()).toBe(before);
  });

  test("returns 404 for a malformed id, after authentication", async () => {
    const aimed = aimedAtLab(id);
    // The path parameter `status` (a device's new status) is not an id.
    for (const name of namesOf(id).filter((name) => name !== "status")) {
      const options = { ...aimed, params: { ...aimed.params, [name]: "!" } };
      const { status, text } = await fixture.lab.owner.call(id, { ...options });
      expect([name, status], text).toEqual([name, 404]);
      expect((await app.call(id, options)).status).toBe(401);
      const device = { ...options, token: fixture.lab.deviceToken };
      if (!accessOf(id).auth.includes("device")) expect((await app.call(id, device)).status).toBe(403);
    }
  });
});

describe.each(byTenant)("%s", (id) => {
  test("rejects callers of another namespace", async () => {
    const before = await stateOfLab();
    const outsiderStatus = TOKENS.includes(id) ? forKinds(id, 404) : () => 403;
    const { elsewhere } = fixture;
    for (const who of [{ token: elsewhere.owner.token }, { apiKey: elsewhere.keys.get("owner") }]) {
      for (const headers of [{}, forgedHeaders(fixture)]) {
        const { status, text } = await app.call(id, { ...aimedAtLab(id), ...who, headers });
        expect(status, text).toBe(outsiderStatus(who));
      }
    }
    expect(await stateOfLab()).toBe(before);
  });

  test("returns 404 for an unknown namespace, and for a malformed id", async () => {
    const { token } = fixture.lab.owner;
    const options = requestOf(fixture, id);
    const at = async (tenant: string) =>
      (await app.call(id, { ...options, token, params: { ...options.params, tenant } })).status;
    expect(await at("00000000-0000-4000-8000-000000000000")).toBe(404);
    expect(await at("nonsense")).toBe(404);
  });
});

test.each(byTenantAndMember)("%s finds no member of another namespace in the caller's own", async (id) => {
  const { elsewhere } = fixture;
  const options = { ...aimedAtLab(id), params: { tenant: elsewhere.tenant, uid: ofLab.member } };
  const { status } = await elsewhere.owner.call(id, { ...options });
  expect(status).toBe(404);
});

describe.each(lists)("%s", (id) => {
  const marks = ({ tenant }: MatrixFixture["lab"], objects: NamespaceObjects) => [
    tenant,
    ...Object.entries(objects).flatMap(([kind, value]) => (kind === "rule" ? [] : [value])),
  ];
  const list = async (credentials: CallOptions) => {
    const answer = await app.call(id, { ...credentials, query: { per_page: 100 } });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-total-count")).toBe(String(answer.body.length));
    return answer.text;
  };
  const having = (text: string, wanted: readonly string[]) => wanted.filter((mark) => text.includes(mark));

  test("lists objects of the credential's namespace, and none of another namespace", async () => {
    const { lab, elsewhere } = fixture;
    const places = [
      [lab, ofLab, elsewhere, ofElsewhere],
      [elsewhere, ofElsewhere, lab, ofLab],
    ] as const;
    for (const [mine, myObjects, theirs, theirObjects] of places) {
      // No workload has the role of the owner.
      const workload = mine.workloads.get(roleFor(id));
      for (const who of [
        { token: mine.owner.token },
        ...(workload ? [{ token: workload.token }] : []),
        { apiKey: mine.keys.get(roleFor(id)) },
      ]) {
        for (const headers of [{}, forgedHeaders(fixture)]) {
          const text = await list({ ...who, headers });
          expect(having(text, marks(mine, myObjects))).not.toEqual([]);
          expect(having(text, marks(theirs, theirObjects))).toEqual([]);
        }
      }
    }
  });
});
