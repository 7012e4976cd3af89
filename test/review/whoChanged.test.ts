import { createServer } from "node:http";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { nameText, type ObjectName, whoChanged } from "../../provider/drift/whoChanged.ts";
import { apiKeyCredential, type Client, createClient } from "../../sdk/index.ts";
import { type Listening, listening } from "../support/listening.ts";

const TENANT = "00000000-0000-4000-8000-000000000000";
/**
 * From this number of objects on, the command reads the audit trail backwards from its latest entry. For fewer objects,
 * it sends one request for each object.
 */
const MANY = 41;
const key = (index: number): ObjectName => ({ kind: "PublicKey", id: `key-${index}` });
const keys = (count: number) => Array.from({ length: count }, (_, index) => key(index));

/** A service with an audit trail of a million entries. */
let service: Listening;
let client: Client;
/** The query parameters of each request that the service received. */
let queries: URLSearchParams[] = [];
/** Returns the object to which an audit entry belongs, by the entry's position. The latest entry has position 0. */
let objectAt: (position: number) => { kind: string; id: string };

beforeAll(async () => {
  const server = createServer((request, response) => {
    const { searchParams: query } = new URL(request.url ?? "", "http://localhost");
    queries.push(query);
    const perPage = Number(query.get("per_page"));
    const first = (Number(query.get("page") ?? 1) - 1) * perPage;
    const entries = Array.from({ length: perPage }, (_, index) => ({
      id: 1_000_000 - first - index,
      at: "2026-01-02T03:04:05.000Z",
      address: "192.0.2.1",
      actor: { kind: "user", id: "64b000000000000000000001", name: `user-${first + index}` },
      request_id: "r",
      operation: "updatePublicKey",
      before: null,
      after: null,
      object: query.has("object")
        ? { kind: query.get("kind"), id: query.get("object") }
        : objectAt(first + index),
    }));
    response.writeHead(200, { "content-type": "application/json", "x-total-count": "1000000" });
    response.end(JSON.stringify(entries));
  });
  service = await listening(server);
  client = createClient({ url: service.url, credential: apiKeyCredential("key") });
});
beforeEach(() => {
  queries = [];
  objectAt = (position) => ({ kind: "publicKey", id: `key-${position}` });
});
afterAll(async () => {
  await client.close();
  await service.stop();
});

it("for a few objects, requests the latest audit entry of each object", async () => {
  const { changes, notes } = await whoChanged(client, TENANT, keys(MANY - 1));
  expect([changes?.size, notes]).toEqual([MANY - 1, []]);
  expect(queries).toHaveLength(MANY - 1);
  expect(queries.every((query) => query.get("per_page") === "1" && query.has("object"))).toBe(true);
});

it("reads the audit trail no further than the latest entries of the objects", async () => {
  // Each key has two audit entries, and the command must return the later one.
  objectAt = (position) => ({ kind: "publicKey", id: `key-${position % 150}` });
  const { changes, notes } = await whoChanged(client, TENANT, keys(150));
  expect(notes).toEqual([]);
  expect(queries.map((query) => query.get("page"))).toEqual(["1", "2"]);
  expect(changes?.get(nameText(key(0)))?.actor.name).toBe("user-0");
  expect(changes?.get(nameText(key(149)))?.actor.name).toBe("user-149");
});

it("reads the latest 5,000 entries of a long audit trail, and reports objects without an entry", async () => {
  objectAt = (position) => {
    // Position 4,999 is the last entry that the command reads. Position 5,000 is the first entry that it does not read.
    if (position === 4_999) return { kind: "publicKey", id: "key-0" };
    if (position === 5_000) return { kind: "publicKey", id: "key-1" };
    return { kind: "device", id: `key-${position % MANY}` };
  };
  const { changes, notes } = await whoChanged(client, TENANT, keys(MANY));
  expect([...(changes?.keys() ?? [])]).toEqual([nameText(key(0))]);
  expect(notes).toEqual([`the audit trail has no entry for ${MANY - 1} of the objects`]);
  expect(queries).toHaveLength(50);
  expect(queries.every((query) => query.get("per_page") === "100")).toBe(true);
});
