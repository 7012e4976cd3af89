import { expect, test } from "vitest";
import { withSharedApp } from "./appOfTest.ts";
import { openConnection } from "./rawConnection.ts";

const app = withSharedApp();

const head = (path: string, body: string) =>
  `POST ${path} HTTP/1.1\r\nHost: gate\r\nContent-Type: application/json\r\n${body}\r\n\r\n`;
const CHUNKED = "Transfer-Encoding: chunked";
const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;

test.each([
  ["chunks of a byte", CHUNKED, chunk("a").repeat(1000)],
  ["chunks of 64 KiB", CHUNKED, chunk("a".repeat(65_536))],
  ["a body without chunks", "Content-Length: 1000000000000", "a".repeat(65_536)],
])(
  "a client that sends endless %s after a refusal receives the response, and is disconnected",
  async (_, length, part) => {
    const { socket, closed, statuses } = openConnection(app.url);
    socket.write(head("/api/sshkeys/public-keys", length));
    await expect.poll(statuses).toEqual(["401"]);
    const send = () => {
      while (!socket.destroyed && socket.write(part));
    };
    socket.on("drain", send);
    send();
    await closed;
    expect(statuses()).toEqual(["401"]);
  },
);

test("a client that sends the small rest of a refused body can use the connection again", async () => {
  const { socket, statuses } = openConnection(app.url);
  socket.write(head("/api/sshkeys/public-keys", "Content-Length: 40000"));
  await expect.poll(statuses).toEqual(["401"]);
  for (let part = 0; part < 4; part += 1) {
    socket.write("a".repeat(10_000));
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  socket.write("GET /healthcheck HTTP/1.1\r\nHost: gate\r\n\r\n");
  await expect.poll(statuses).toEqual(["401", "200"]);
  socket.write("GET /healthcheck HTTP/1.1\r\nHost: gate\r\n\r\n");
  await expect.poll(statuses).toEqual(["401", "200", "200"]);
});

test("a body in 2,000 chunks is accepted, and a body in more chunks ends the connection", async () => {
  const body = JSON.stringify({ username: "nobody", password: "x".repeat(1965) });
  expect(body).toHaveLength(2000);
  const whole = openConnection(app.url);
  whole.socket.write(`${head("/api/login", CHUNKED)}${[...body].map(chunk).join("")}0\r\n\r\n`);
  await expect.poll(whole.statuses).toHaveLength(1);
  const { socket, closed, statuses } = openConnection(app.url);
  socket.write(head("/api/login", CHUNKED) + chunk(" ").repeat(2001));
  await closed;
  expect(statuses()).toEqual([]);
});
