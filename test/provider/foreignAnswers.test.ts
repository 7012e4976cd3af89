import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Fleet, startFleet } from "../support/fleet.ts";
import { Harness, type Program } from "./support/harness.ts";

// A proxy whose routes are wrong answers 404 to everything, which must not empty a state.

let fleet: Fleet;
let proxy: Server;
let body: string;
beforeAll(async () => {
  fleet = await startFleet();
  proxy = createServer((_incoming, outgoing) => {
    outgoing.writeHead(404).end(body);
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
});
afterAll(async () => {
  await new Promise((resolve) => proxy.close(resolve));
  await fleet.stop();
});

const program: Program = {
  rule: {
    type: "FirewallRule",
    args: { action: "deny", priority: 1, sourceIp: "x", username: "y", filter: { hostname: "z" } },
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
])("a proxy that answers each request with 404 and %s", (_name, text) => {
  let direct: Harness;
  let through: Harness;
  beforeEach(async () => {
    body = text;
    direct = new Harness(fleet.env);
    const { port } = proxy.address() as AddressInfo;
    through = new Harness({ ...fleet.env, GATEHOUSE_URL: `http://127.0.0.1:${port}` });
    await direct.up(program);
    for (const [name, entry] of direct.state) through.state.set(name, entry);
  });
  afterEach(async () => {
    await direct.up({});
    await Promise.all([direct.close(), through.close()]);
  });

  it("is an error for a refresh and a destroy, and nothing counts as deleted", async () => {
    await expect(through.refresh()).rejects.toThrow(/\b404\b/);
    expect(through.state.size).toBe(3);
    const failure: unknown = await through.up({}).catch((error: unknown) => error);
    expect((failure as AggregateError).errors).toHaveLength(3);
  });
});
