import { once } from "node:events";
import type { Duplex } from "node:stream";
import { expect, it, vi } from "vitest";
import { Transport2 } from "../../server/gateway/agentTunnels/Transport2.ts";
import { acceptSsh, DATA, YamuxPeer } from "../support/YamuxPeer.ts";

const SESSION = "5e".repeat(32);
const SELECTED = "\x13/multistream/1.0.0\n\x10/ssh/open/1.0.0\n";

/** Connects a transport to an agent whose behavior on each stream the test defines. */
function connected(accept: (stream: Duplex) => unknown) {
  const peer: YamuxPeer = new YamuxPeer((bytes) => transport.receive(bytes), accept);
  const transport: Transport2 = new Transport2({
    send: (bytes, sent) => {
      peer.receive(Buffer.from(bytes));
      if (sent) process.nextTick(sent);
    },
    count: () => true,
    fail: () => transport.closed(),
  });
  const dataSent = () => peer.frames.filter(({ type, data }) => type === DATA && data.length > 0);
  return { transport, dataSent };
}

it("selects SSH, sends the JSON alone, and connects when the agent has sent its first bytes of SSH", async () => {
  const opened = Promise.withResolvers<Duplex>();
  const { transport, dataSent } = connected(async (stream) => {
    expect(await acceptSsh(stream)).toBe(SESSION);
    opened.resolve(stream);
  });
  let isConnected = false;
  const connection = transport.connect(SESSION).then((stream) => {
    isConnected = true;
    return stream;
  });
  const agent = await opened.promise;
  await new Promise((resolve) => setImmediate(resolve));
  expect(isConnected).toBe(false);
  expect(dataSent().map(({ data }) => data.toString("latin1"))).toEqual([SELECTED, `{"id":"${SESSION}"}\n`]);
  agent.write("SSH-2.0-Go\r\n");
  const stream = await connection;
  expect(String(stream.read())).toBe("SSH-2.0-Go\r\n");
  stream.write("from the service");
  await once(agent, "readable");
  expect(String(agent.read())).toBe("from the service");
});

it.each([
  ["another protocol", "\x13/multistream/1.0.0\n\x03na\n"],
  ["another version", "\x13/multistream/2.0.0\n\x10/ssh/open/1.0.0\n"],
  ["a long message", `\x7f${"x".repeat(127)}`],
  ["a length of two bytes", "\x93\x00/multistream/1.0.0\n"],
  ["garbage", "SSH-2.0-Go\r\n".repeat(20)],
  // With a full buffer, a read of no bytes would repeat without end.
  ["a message of no bytes", `\x00${"x".repeat(16_384)}`],
])("refuses %s", async (_what, answer) => {
  const { transport } = connected((stream) => stream.write(Buffer.from(answer, "latin1")));
  await expect(transport.connect(SESSION)).rejects.toThrow("does not accept SSH connections");
});

it("ends the wait for an agent that does not answer, after 10 seconds", async () => {
  vi.useFakeTimers();
  try {
    const closed = Promise.withResolvers<void>();
    const { transport } = connected((stream) => {
      stream.write("\x13/multi");
      stream.on("close", closed.resolve);
    });
    const outcome = transport.connect(SESSION).catch((error: Error) => error.message);
    let isOver = false;
    outcome.finally(() => {
      isOver = true;
    });
    await vi.advanceTimersByTimeAsync(9_999);
    expect(isOver).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(await outcome).toBe("did not answer in time");
    await closed.promise;
    expect(vi.getTimerCount()).toBe(0);
  } finally {
    vi.useRealTimers();
  }
});

it.each<[string, (stream: Duplex) => unknown]>([
  ["the agent ends the stream at once", (stream) => stream.end()],
  ["the agent ends the stream in a message", (stream) => stream.end("\x13/multi")],
  [
    "the agent ends the stream after it has selected SSH",
    (stream) => stream.end("\x13/multistream/1.0.0\n\x10/ssh/open/1.0.0\n"),
  ],
])("reports that %s", async (_what, accept) => {
  const { transport } = connected(accept);
  await expect(transport.connect(SESSION)).rejects.toThrow("hung up");
});

it("reports that the tunnel was closed", async () => {
  const { transport } = connected(() => transport.closed());
  await expect(transport.connect(SESSION)).rejects.toThrow("hung up");
});
