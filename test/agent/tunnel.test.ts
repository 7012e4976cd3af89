import { once } from "node:events";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { type FakeGateway, TENANT } from "./FakeGateway.ts";
import { type Pair, startPair } from "./support.ts";

let pair: Pair;
let gateway: FakeGateway;
beforeAll(async () => {
  pair = await startPair();
  gateway = pair.gateway;
});
afterAll(async () => {
  await pair.stop();
  expect(gateway.faults).toEqual([]);
});

const IDENT = Buffer.from("SSH-2.0-test\r\n");

/** Returns the data that a connection receives until the key exchange begins. */
const beginningOf = (socket: Awaited<ReturnType<FakeGateway["dial"]>>): Promise<string> =>
  new Promise((resolve, reject) => {
    let received = "";
    socket.on("message", (data: Buffer) => {
      received += data.toString("latin1");
      if (received.includes("kex-strict")) resolve(received);
    });
    socket.on("close", () => reject(new Error(`it ended with ${received}`)));
  });

/** Returns the first message that arrives on a connection. */
const firstOf = async (socket: Awaited<ReturnType<FakeGateway["dial"]>>): Promise<string> => {
  const [data] = (await once(socket, "message")) as [Buffer];
  return data.toString();
};

it("enrolls the machine with its own key", () => {
  expect(gateway.enrollments[0]).toMatchObject({
    tenant_id: TENANT,
    hostname: "edge-01",
    identity: { mac: expect.stringMatching(/^02(:[0-9a-f]{2}){5}$/) },
    info: { platform: "gatehouse", version: expect.stringMatching(/^v\d+\.\d+\.\d+$/) },
    public_key: expect.stringMatching(/^-----BEGIN RSA PUBLIC KEY-----\n/),
  });
});

it("keeps the tunnel alive", async () => {
  await vi.waitFor(() => expect(gateway.lines[0]).toEqual({ command: "keep-alive" }));
});

it("answers a request for SSH only with SSH, even if the client's identification arrives with the request", async () => {
  const request = Buffer.from("GET /ssh/one HTTP/1.1\r\nHost: gateway\r\n\r\n");
  const [together, cut] = await Promise.all([gateway.dial(), gateway.dial()]);
  const answers = [beginningOf(together), beginningOf(cut)];
  together.send(Buffer.concat([request, IDENT]));
  cut.send(request.subarray(0, 20));
  cut.send(request.subarray(20));
  cut.send(IDENT);
  // The agent begins the key exchange after it has read the client's identification string.
  for (const answer of await Promise.all(answers)) expect(answer).toMatch(/^SSH-2\.0-\S+\r\n/);
  together.terminate();
  cut.terminate();
});

it("ends only the connection of the session with the given uid", async () => {
  const [one, other] = await Promise.all([gateway.dial(), gateway.dial()]);
  one.send(Buffer.from("GET /ssh/first HTTP/1.1\r\nHost: gateway\r\n\r\n"));
  other.send(Buffer.from("GET /ssh/second HTTP/1.1\r\nHost: gateway\r\n\r\n"));
  await Promise.all([firstOf(one), firstOf(other)]);
  const ended = once(one, "close");
  expect(await gateway.request("/ssh/close/first")).toMatch(/^HTTP\/1\.1 200 OK\r\nContent-Length: 0\r\n/);
  await ended;
  expect(other.readyState).toBe(other.OPEN);
  other.terminate();
});

it("rejects requests for other paths, and closes a connection with an endless request", async () => {
  const answer = await gateway.request("/etc/passwd");
  expect(answer).toMatch(/^HTTP\/1\.1 404 Not Found\r\n/);
  expect(answer).toMatch(/\r\n\r\n\{"message":"Not Found"\}$/);
  const endless = await gateway.dial();
  const closed = once(endless, "close");
  endless.send(Buffer.alloc(10_000, "x"));
  await closed;
});

it.each([
  ["another path", "/api/devices"],
  ["another host", "//evil.example/ssh/revdial?uuid=1"],
  ["an unknown connection", "/ssh/revdial?uuid=unknown"],
])("reports that it could not pick up %s", async (_what, connPath) => {
  gateway.sendLine({ command: "conn-ready", connPath });
  await vi.waitFor(() =>
    expect(gateway.lines).toContainEqual({ command: "pickup-failed", connPath, err: expect.any(String) }),
  );
});

it("opens a new tunnel with the same token after the tunnel is lost, and keeps open connections", {
  tags: ["long"],
}, async () => {
  const login = await gateway.dial();
  login.send(Buffer.from("GET /ssh/lasting HTTP/1.1\r\nHost: gateway\r\n\r\n"));
  await firstOf(login);
  const { length: enrollments } = gateway.enrollments;
  gateway.closeTunnel();
  await gateway.tunneled(2);
  expect(gateway.enrollments).toHaveLength(enrollments);
  expect(login.readyState).toBe(login.OPEN);
  login.terminate();
});

it("enrolls again when its token is refused", { tags: ["long"] }, async () => {
  const { length: enrollments } = gateway.enrollments;
  gateway.revokeToken();
  gateway.closeTunnel();
  await gateway.tunneled(3);
  expect(gateway.tunnels).toContain(401);
  expect(gateway.enrollments).toHaveLength(enrollments + 1);
  expect(gateway.enrollments.at(-1)).toEqual(gateway.enrollments[0]);
});
