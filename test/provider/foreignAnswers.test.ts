import { createServer } from "node:http";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { type Listening, listening } from "../support/listening.ts";
import { forward } from "../support/proxy.ts";
import { sharedFleet } from "../support/sharedFleet.ts";
import { startSparseService } from "../support/sparseService.ts";
import { Harness, type Program } from "./support/harness.ts";

// A misconfigured proxy responds to every request with 404. This must not cause the provider to treat the objects as
// deleted and remove them from the state.

const fleet = sharedFleet();
let proxy: Listening;
let body: string;
beforeAll(async () => {
  proxy = await listening(
    createServer((_incoming, outgoing) => {
      outgoing.writeHead(404).end(body);
    }),
  );
});
afterAll(() => proxy.stop());

const program: Program = {
  rule: {
    type: "FirewallRule",
    args: { action: "deny", priority: 1, sourceIp: ".*", username: "y", filter: { hostname: "z" } },
  },
  ci: { type: "ApiKey", args: { validDays: 30, role: "observer" } },
  stage: { type: "Namespace", args: { name: "stage" } },
};

describe.each([
  ["a page", "<html>404 Not Found</html>"],
  ["plain text", "404 page not found\n"],
  ["JSON of another kind", '{"error":"no route"}'],
  ["no body", ""],
  ["JSON that looks like the service's", '{"message":"no route matched"}'],
])("a proxy that responds to each request with 404 and %s", (_name, text) => {
  let direct: Harness;
  let through: Harness;
  beforeEach(async () => {
    body = text;
    direct = new Harness(fleet.env);
    through = new Harness({ ...fleet.env, GATEHOUSE_URL: proxy.url });
    await direct.up(program);
    for (const [name, entry] of direct.state) through.state.set(name, entry);
  });
  afterEach(async () => {
    await direct.up({});
    await Promise.all([direct.close(), through.close()]);
  });

  it("causes a refresh and a destroy to fail, and no object counts as deleted", async () => {
    await expect(through.refresh()).rejects.toThrow(/\b404\b/);
    expect(through.state.size).toBe(3);
    const failure: unknown = await through.up({}).catch((error: unknown) => error);
    expect((failure as AggregateError).errors).toHaveLength(3);
  });
});

/** True for a request that reads or deletes a single object. Namespaces have a separate function. */
const isAboutOne = (method = "", path = "") =>
  method === "DELETE" || /^\/api\/(devices|firewall\/rules)\/[^/?]+$/.test(path);
const isAboutNamespace = (path = "") => /^\/api\/namespaces\/[0-9a-f-]{36}$/.test(path);

describe.each([
  { status: 404, text: "", hidesNamespaces: false },
  { status: 404, text: "", hidesNamespaces: true },
  { status: 404, text: '{"message":"no Route matched with those values"}', hidesNamespaces: false },
  { status: 404, text: '{"message":"no Route matched with those values"}', hidesNamespaces: true },
])(
  "a proxy that responds to requests about one object with $status and the body $text (namespaces too: $hidesNamespaces)",
  ({ status, text, hidesNamespaces }) => {
    let partial: Listening;
    let direct: Harness;
    let through: Harness;
    beforeEach(async () => {
      const server = createServer((incoming, outgoing) => {
        const { method, url: path } = incoming;
        if (isAboutOne(method, path) || (hidesNamespaces && isAboutNamespace(path))) {
          outgoing.writeHead(status).end(text);
          return;
        }
        forward(fleet.service.url, incoming, outgoing);
      });
      partial = await listening(server);
      await fleet.enroll("listed");
      direct = new Harness(fleet.env);
      through = new Harness({ ...fleet.env, GATEHOUSE_URL: partial.url });
      await direct.up({
        ...program,
        tags: { type: "DeviceTags", args: { device: "listed", tags: ["edge", "prod"] } },
        device: { type: "Device", args: { device: "listed", onDestroy: "remove" } },
      });
      for (const [name, entry] of direct.state) through.state.set(name, entry);
    });
    afterEach(async () => {
      await direct.up({});
      await Promise.all([direct.close(), through.close()]);
      await partial.stop();
    });

    it("causes no removal from the state: a refresh keeps all objects, and a destroy fails for objects that lists contain", async () => {
      const steps = await through.refresh().catch((error: unknown) => String(error));
      expect(String(steps)).not.toContain("delete");
      expect([...through.state.keys()].sort()).toEqual(["ci", "device", "rule", "stage", "tags"]);
      const failure: unknown = await through.up({}).catch((error: unknown) => error);
      expect((failure as AggregateError).errors).toHaveLength(5);
      expect(await direct.refresh()).toEqual([]);
    });
  },
);

it("an empty list without X-Total-Count proves no deletion: the run fails, and the state keeps the object", async () => {
  const sparse = await startSparseService(fleet.service.url, { withoutTotals: true });
  const direct = new Harness(fleet.env);
  const through = new Harness({ ...fleet.env, GATEHOUSE_URL: sparse.url });
  onTestFinished(async () => {
    await Promise.all([direct.close(), through.close()]);
    await sparse.stop();
  });
  const { rule } = program;
  await direct.up({ rule } as Program);
  for (const [name, entry] of direct.state) through.state.set(name, entry);
  const failure = (await through.up({}).catch((error: unknown) => error)) as AggregateError;
  expect(String(failure)).toContain("has no header X-Total-Count: 0");
  expect(String(failure)).toContain("doubtful_answer");
  expect([...through.state.keys()]).toEqual(["rule"]);
});
