import { createServer } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { ProtocolError, passwordCredential, TransportError } from "../../sdk/index.ts";
import { listenOnNewPort } from "../support/listening.ts";
import { connect, createKey, failure } from "./scriptedClient.ts";
import { fakeTiming, scriptedServer } from "./scriptedServer.ts";

/** Starts a server that sends the next of these texts for each request, on any connection. Returns its URL. */
async function serverWith(
  ...answers: readonly [string, ...string[]]
): Promise<{ url: string; connections: () => number }> {
  let connections = 0;
  const rest = [...answers];
  const server = createServer((socket) => {
    connections += 1;
    const answer = () => void socket.write(rest.shift() ?? "");
    socket.on("error", () => {}).on("data", answer);
  });
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${await listenOnNewPort(server)}`, connections: () => connections };
}

test.each([
  ["an SSH port", "SSH-2.0-OpenSSH_9.2\r\n"],
  ["the port of another service", "220 mail.example.org ESMTP\r\n"],
])("a response of %s is an error without retries, and had no effect", async (what, greeting) => {
  const { url, connections } = await serverWith(greeting);
  const error = await failure(createKey(connect(url, { timing: fakeTiming().timing })), ProtocolError);
  expect(error).toMatchObject({
    outcome: "none",
    message: expect.stringContaining(
      `${url} is ${what}, which does not support HTTP. Set the URL to the HTTP or HTTPS address of the service.`,
    ),
  });
  expect(connections()).toBe(1);
});

test("bytes that are not HTTP have an unknown effect after an HTTP response from the same address", async () => {
  const ok = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n[]";
  const { url } = await serverWith(ok, "nonsense\r\n");
  const client = connect(url, { timing: fakeTiming().timing });
  expect(await client.getTags()).toEqual([]);
  const error = await failure(createKey(client), TransportError);
  expect(error).toMatchObject({ reason: "interrupted", outcome: "unknown" });
});

test.each(["die", { status: 500 }, { body: "page" }] as const)(
  "a login that ends with %j has no effect on objects",
  async (step) => {
    const server = await scriptedServer();
    server.script(step);
    const credential = passwordCredential({ username: "ann", password: "pass-word" });
    const client = connect(server.url, { credential, timing: fakeTiming().timing });
    const error = await failure(client.getTags(), Error);
    expect(error).toMatchObject({ operation: "login", outcome: "none" });
    expect(error.message).not.toContain("may have taken effect");
    expect(server.requests).toHaveLength(1);
  },
);
