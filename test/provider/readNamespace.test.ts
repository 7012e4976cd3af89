import { createServer, type Server } from "node:http";
import { afterAll, beforeAll, expect, it } from "vitest";
import { watchedIn } from "../../provider/namespace/liveObjects.ts";
import { readNamespace } from "../../provider/namespace/readNamespace.ts";
import { definitionsByName } from "../../provider/resources/index.ts";
import { Connection } from "../../provider/service/connection.ts";
import { apiKeyCredential, createClient } from "../../sdk/index.ts";
import { sshKeyLine } from "./support/programs.ts";

const TENANT = "3dd0d1f8-8246-4519-b11a-a3dd33717f65";
const POLICY = {
  id: "5f0c3b1e-0000-4000-8000-000000000001",
  name: "all",
  subject: { type: "role", value: "operator" },
  filter: { tags: [] },
  logins: ["root"],
  source_ip: [],
  action: "allow",
  require_reauth: false,
  reauth_period: null,
  created_at: "2026-01-01T00:00:00Z",
  updated_at: "2026-01-01T00:00:00Z",
};
const ACCOUNT = {
  id: "5f0c3b1e-0000-4000-8000-000000000002",
  name: "ci",
  created_at: "2026-01-01T00:00:00Z",
  identities: [],
};
/** A key by which the client finds the namespace of its API key. */
const KEY = {
  fingerprint: "00:".repeat(16).slice(0, -1),
  name: "ana",
  username: ".*",
  filter: { hostname: ".*" },
  data: "",
  created_at: "2026-01-01T00:00:00Z",
  tenant_id: TENANT,
};

let server: Server;
let version = "";
/** A server that lists access policies and service accounts. It rejects all other requests, also for the namespace. */
beforeAll(async () => {
  server = createServer((request, response) => {
    const path = request.url?.split("?")[0] ?? "";
    const bodies: Record<string, unknown> = {
      "/info": { version, endpoints: { api: "", ssh: "" }, setup: true },
      "/api/sshkeys/public-keys": [KEY],
      "/api/access-policies": [POLICY],
      "/api/service-accounts": [ACCOUNT],
    };
    const body = bodies[path];
    response.writeHead(body ? 200 : 403, { "content-type": "application/json" });
    response.end(JSON.stringify(body ?? { message: "forbidden" }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});
afterAll(() => server.close());

async function inventory() {
  const { port } = server.address() as { port: number };
  const credential = apiKeyCredential("11111111-2222-4333-8444-555555555555");
  const client = createClient({ url: `http://127.0.0.1:${port}`, credential });
  const connection = new Connection(client, { defaultTenant: TENANT });
  const read = watchedIn(await readNamespace(connection, TENANT, { evaluatesAccess: false }));
  await client.close();
  const of = (kind: string) => [
    ...read.objects.filter(({ definition }) => definition.name === kind).map(({ name }) => name),
    ...read.unread.filter((name) => name === kind).map(() => "unread"),
  ];
  return { policies: of("AccessPolicy"), accounts: of("ServiceAccount") };
}

it("access policies and service accounts never count as read and empty if the access mode is not known", async () => {
  version = "v0.27.0";
  expect(await inventory()).toEqual({ policies: ["all"], accounts: ["unread"] });
});

it("a server without access modes has no access policies and no service accounts", async () => {
  version = "v0.22.0";
  expect(await inventory()).toEqual({ policies: [], accounts: [] });
});

it("the list of keys reads the members once", async () => {
  let reads = 0;
  const members = [{ id: "u1", email: "Ana@example.com", role: "owner" }];
  const namespace = { tenantId: TENANT, members, settings: {} };
  const keys = ["u1", "u2", "", "u1"].map((owner, index) => ({
    fingerprint: `${index}`,
    name: `k${index}`,
    username: ".*",
    filter: { hostname: ".*" },
    owner,
    data: Buffer.from(sshKeyLine()).toString("base64"),
  }));
  const find = async () => {
    reads += 1;
    return namespace;
  };
  const connection = {
    tenant: async () => ({ tenant: TENANT, listing: () => ({ all: async () => keys }) }),
    namespaces: { find },
  } as unknown as Connection;
  const listed = (await definitionsByName.PublicKey.list?.(connection, TENANT)) ?? [];
  expect(listed.map(({ state }) => [state.owner, state.ownerId])).toEqual([
    ["ana@example.com", "u1"],
    ["", "u2"],
    ["", ""],
    ["ana@example.com", "u1"],
  ]);
  expect(reads).toBe(1);
});

it.each([null, "[secret]", "[unknown]", undefined])(
  "no key is kept by replaced keys that are %j",
  (previous) => {
    expect(definitionsByName.ApiKey.rotation?.keeps({ previous } as never)).toEqual([]);
  },
);
