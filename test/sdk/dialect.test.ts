import { expect, it, onTestFinished } from "vitest";
import { apiKeyCredential, ConfigurationError, createClient, DIALECTS } from "../../sdk/index.ts";
import { connect, failure, KEY, wireNamespace } from "./scriptedClient.ts";
import { type Step, scriptedServer, TENANT } from "./scriptedServer.ts";

it.each([
  ["0.19.0", "0.19", false],
  ["v0.20.1", "0.20", false],
  ["0.21.7", "0.21", false],
  ["0.22.0", "0.22", false],
  ["0.24.2", "0.22", false],
  ["0.26.0", "0.25", false],
  ["v0.27.0-rc.6", "0.27", false],
  ["0.31.0", "0.27", true],
  ["1.0.0", "0.27", true],
])("version %s uses dialect %s", async (serverVersion, name, isNewer) => {
  const client = connect("http://127.0.0.1:9", { serverVersion });
  expect(await client.serverVersion()).toMatchObject({ dialect: { name }, isNewer });
});

it("rejects a text that is not a version", () => {
  const create = () => createClient({ url: "http://127.0.0.1:9", serverVersion: "latest" });
  expect(create).toThrow("is not a version");
});

const answer = (body: unknown): Step => ({ body });
const missing: Step = { status: 404, body: { message: "Not Found" } };
const namespace = (settings: object) => answer({ ...wireNamespace, settings });

it.each([
  ["has access modes", namespace({ ssh_access_mode: "legacy" }), missing, "0.27"],
  ["has tags as objects", namespace({}), answer([]), "0.22"],
  ["has neither", namespace({}), missing, "0.19"],
])("a server without a version that %s uses the dialect of its answers", async (_what, own, tags, name) => {
  const server = await scriptedServer();
  server.always(({ path }) => {
    if (path.startsWith("/info")) return answer({ version: "latest" });
    if (path.endsWith("/tags")) return tags;
    return path.startsWith("/api/namespaces?") ? answer([{ tenant_id: TENANT, members: [{}] }]) : own;
  });
  const client = createClient({ url: server.url, credential: apiKeyCredential(KEY) });
  onTestFinished(() => client.close());
  expect(await client.serverVersion()).toMatchObject({ version: undefined, dialect: { name } });
});

it("a server without a version and without a namespace has no dialect", async () => {
  const server = await scriptedServer();
  server.always(missing);
  const client = createClient({ url: server.url });
  onTestFinished(() => client.close());
  const error = await failure(client.serverVersion(), ConfigurationError);
  expect(error.message).toContain("The server reports no version");
});

it("every dialect has the differences of the versions before it, unless they ended", () => {
  const names = DIALECTS.map(({ differences }) => differences.map(({ name }) => name));
  expect(names[0]).toEqual(["errors without a message"]);
  expect(names[3]).toContain("fixed tags of keys");
  expect(names[4]).not.toContain("fixed tags of keys");
  expect(names.at(-1)).toEqual(expect.arrayContaining(["tags as objects", "access modes", "one namespace"]));
});
