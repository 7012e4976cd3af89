import { once } from "node:events";
import { buffer } from "node:stream/consumers";
import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { Yamux } from "../../server/gateway/agentTunnels/Yamux.ts";
import {
  ACK,
  DATA,
  FIN,
  GO_AWAY,
  PING,
  RST,
  SYN,
  type TestFrame,
  WINDOW_UPDATE,
  YamuxParser,
  yamuxFrame,
} from "../support/YamuxPeer.ts";

const WINDOW = 256 * 1024;
const bytes = (size: number, value = 7) => Buffer.alloc(size, value);

/** A connection whose other side is the test. `sent` contains the frames that the service has sent. */
function connection({ countable = Number.POSITIVE_INFINITY, waits = false } = {}) {
  const parser = new YamuxParser();
  const sent: ReturnType<YamuxParser["add"]> = [];
  const waiting: (() => void)[] = [];
  let counted = 0;
  const failed = vi.fn<(violation: string) => void>();
  const yamux = new Yamux({
    send: (data, done) => {
      sent.push(...parser.add(Buffer.from(data)));
      if (done === undefined) return;
      if (waits) waiting.push(done);
      else process.nextTick(done);
    },
    count: (_bytes, messages) => {
      counted += messages;
      return counted <= countable;
    },
    fail: failed,
  });
  const receive = (...frames: TestFrame[]) => yamux.receive(Buffer.concat(frames.map(yamuxFrame)));
  return { yamux, sent, waiting, failed, receive, counted: () => counted };
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
const sizes = (frames: readonly { readonly type: number; readonly data: Buffer }[]) =>
  frames.filter(({ type }) => type === DATA).map(({ data }) => data.length);

it("opens streams with odd ids, and sends no data before the consumer writes", () => {
  const { yamux, sent } = connection();
  yamux.open();
  yamux.open();
  expect(sent.map(({ type, flags, id, length }) => [type, flags, id, length])).toEqual([
    [WINDOW_UPDATE, SYN, 1, 0],
    [WINDOW_UPDATE, SYN, 3, 0],
  ]);
});

it("answers pings with their value", () => {
  const { sent, receive } = connection();
  receive({ type: PING, flags: SYN, length: 0xcafe }, { type: PING, flags: ACK, length: 1 });
  expect(sent).toEqual([{ type: PING, flags: ACK, id: 0, length: 0xcafe, data: bytes(0) }]);
});

describe("flow control", () => {
  it("sends at most a window, in frames of 64 KiB, and continues after a window update", async () => {
    const { yamux, sent, receive } = connection();
    const stream = yamux.open();
    stream.write(bytes(WINDOW + 1000));
    await turn();
    expect(sizes(sent)).toEqual([65536, 65536, 65536, 65536]);
    receive({ type: WINDOW_UPDATE, id: 1, length: 600 });
    await turn();
    expect(sizes(sent).slice(4)).toEqual([600]);
    receive({ type: WINDOW_UPDATE, id: 1, length: 100_000 });
    await turn();
    expect(sizes(sent).slice(5)).toEqual([400]);
  });

  it("sends the next frame only after the connection has sent the last one", async () => {
    const { yamux, sent, waiting } = connection({ waits: true });
    const stream = yamux.open();
    expect(stream.write(bytes(200_000))).toBe(false);
    await turn();
    expect(sizes(sent)).toEqual([65536]);
    waiting.shift()?.();
    expect(sizes(sent)).toEqual([65536, 65536]);
  });

  it("grants more data only after the consumer has read half a window", async () => {
    const { yamux, sent, receive, failed } = connection();
    const stream = yamux.open();
    receive({ id: 1, data: bytes(WINDOW) });
    await turn();
    expect(sent).toHaveLength(1);
    for (let read = 0; read < WINDOW / 2 + 20_000; read += 1024) expect(stream.read(1024)).toHaveLength(1024);
    await turn();
    const granted = () => sent.slice(1).reduce((sum, { length }) => sum + length, 0);
    expect(granted()).toBeGreaterThanOrEqual(WINDOW / 2);
    expect(granted()).toBeLessThanOrEqual(WINDOW / 2 + 40_000);
    stream.resume();
    await vi.waitFor(() => expect(granted()).toBe(WINDOW));
    expect(failed).not.toHaveBeenCalled();
  });

  it("grants more data after a single large message to a paused consumer", async () => {
    const { yamux, sent, receive } = connection();
    const stream = yamux.open();
    expect(stream.read()).toBeNull();
    receive({ id: 1, data: bytes(WINDOW) });
    await turn();
    stream.resume();
    await vi.waitFor(() => expect(sent.at(-1)).toMatchObject({ type: WINDOW_UPDATE, id: 1, length: WINDOW }));
  });

  it("closes the connection if a window becomes too large", () => {
    const { yamux, receive, failed } = connection();
    yamux.open();
    receive({ type: WINDOW_UPDATE, id: 1, length: 0xffffffff });
    expect(failed).toHaveBeenCalledWith("a window that is too large");
  });

  it("holds many small frames of a slow consumer in few buffers", async () => {
    const { yamux, receive } = connection();
    const stream = yamux.open();
    for (let count = 0; count < WINDOW; count += 1) receive({ id: 1, data: bytes(1, count & 255) });
    const chunks: Buffer[] = [];
    stream.on("data", (chunk) => chunks.push(chunk));
    await vi.waitFor(() => expect(Buffer.concat(chunks)).toHaveLength(WINDOW));
    expect(chunks.length).toBeLessThan(50);
    expect(Buffer.concat(chunks).every((value, index) => value === (index & 255))).toBe(true);
  });
});

it("keeps no large buffer for each byte of a consumer that does not read", async () => {
  const { yamux, receive } = connection();
  const stream = yamux.open();
  stream.read(0);
  for (let count = 0; count < 200; count += 1) {
    receive({ id: 1, data: bytes(1) }, { id: 1, data: bytes(1) });
    await turn();
  }
  const held = new Set<ArrayBufferLike>();
  for (let chunk = stream.read(1); chunk !== null; chunk = stream.read(1)) held.add(chunk.buffer);
  const size = [...held].reduce((sum, { byteLength }) => sum + byteLength, 0);
  expect(size).toBeLessThan(200 * 1024);
});

describe("the end of a stream", () => {
  it("ends a write that waits for the window", async () => {
    const { yamux, receive } = connection();
    const stream = yamux.open();
    stream.resume();
    stream.end(bytes(2 * WINDOW));
    await turn();
    receive({ type: WINDOW_UPDATE, flags: FIN, id: 1 });
    await once(stream, "close");
  });

  it("lets the consumer read after it has finished writing", async () => {
    const { yamux, sent, receive } = connection();
    const stream = yamux.open();
    stream.end("question");
    await turn();
    expect(sent.at(-1)).toMatchObject({ type: WINDOW_UPDATE, flags: FIN, id: 1 });
    receive({ id: 1, data: Buffer.from("answer") }, { type: WINDOW_UPDATE, flags: FIN, id: 1 });
    expect(String(await buffer(stream))).toBe("answer");
    if (!stream.closed) await once(stream, "close");
    expect(sent.some(({ flags }) => flags === RST)).toBe(false);
  });

  it("delivers the data of the frame that ends the stream, then finishes writing too", async () => {
    const { yamux, sent, receive } = connection();
    const stream = yamux.open();
    stream.write("pending");
    receive({ id: 1, flags: FIN, data: Buffer.from("last") });
    expect(String(await buffer(stream))).toBe("last");
    if (!stream.closed) await once(stream, "close");
    expect(sent.map(({ flags, data }) => [flags, String(data)]).slice(1)).toEqual([
      [0, "pending"],
      [FIN, ""],
    ]);
  });

  it("delivers all data that a slow consumer has not read before the end", async () => {
    const { yamux, receive } = connection();
    const stream = yamux.open();
    for (let count = 0; count < 200; count += 1) receive({ id: 1, data: bytes(1000, count) });
    receive({ type: WINDOW_UPDATE, flags: FIN, id: 1 });
    expect((await buffer(stream)).length).toBe(200_000);
  });

  it("closes a stream that the agent resets, without an answer", async () => {
    const { yamux, sent, receive } = connection();
    const stream = yamux.open();
    receive({ type: WINDOW_UPDATE, flags: RST, id: 1 });
    await once(stream, "close");
    expect(sent).toHaveLength(1);
  });

  it("resets a stream that the consumer destroys, and ignores data that is on its way", async () => {
    const { yamux, sent, receive, failed } = connection();
    const stream = yamux.open().destroy();
    await once(stream, "close");
    expect(sent.at(-1)).toMatchObject({ type: WINDOW_UPDATE, flags: RST, id: 1 });
    receive({ id: 1, data: bytes(WINDOW) }, { type: WINDOW_UPDATE, flags: FIN, id: 1 });
    expect(failed).not.toHaveBeenCalled();
    receive({ id: 1, data: bytes(1) });
    expect(failed).toHaveBeenCalledWith("more data than the window of the stream allows");
  });

  it("closes all streams together with the tunnel", async () => {
    const { yamux } = connection();
    const streams = [yamux.open(), yamux.open()];
    const closed = Promise.all(streams.map((stream) => once(stream, "close")));
    yamux.close();
    await closed;
  });
});

describe("limits", () => {
  it.each<[string, TestFrame[]]>([
    ["a frame that is longer than the window", [{ id: 1, length: WINDOW + 1 }]],
    [
      "more data than the window",
      [
        { id: 1, data: bytes(WINDOW) },
        { id: 1, data: bytes(1) },
      ],
    ],
    [
      "data after the end",
      [
        { id: 1, flags: FIN },
        { id: 1, data: bytes(1) },
      ],
    ],
    ["an unknown version", [{ version: 1, id: 1 }]],
    ["an unknown type", [{ type: 4, id: 1 }]],
    ["a stream that the service has not opened", [{ id: 3, data: bytes(1) }]],
    ["a stream of the agent", [{ type: WINDOW_UPDATE, flags: SYN, id: 2 }]],
    ["data without a stream", [{ id: 0, data: bytes(1) }]],
    ["a go-away", [{ type: GO_AWAY }]],
  ])("closes the connection with a go-away after %s", (_what, frames) => {
    const { yamux, sent, receive, failed } = connection();
    yamux.open();
    receive(...frames, { type: PING, flags: SYN, length: 5 });
    expect(failed).toHaveBeenCalledOnce();
    expect(sent.at(-1)).toMatchObject({ type: GO_AWAY, length: 1 });
  });

  it("does not count the acknowledgments and ends of the service's own streams", () => {
    const { yamux, receive, counted } = connection({ countable: 0 });
    for (let id = 1; id < 2001; id += 2) {
      yamux.open();
      receive({ type: WINDOW_UPDATE, flags: ACK, id }, { type: WINDOW_UPDATE, flags: RST, id });
    }
    expect(counted()).toBe(0);
  });

  it("refuses more than 1,000 open streams", () => {
    const { yamux } = connection();
    for (let count = 0; count < 1000; count += 1) yamux.open();
    expect(() => yamux.open()).toThrow("has too many open connections");
  });

  it.each<[string, TestFrame]>([
    ["pings", { type: PING, flags: SYN }],
    ["answers to pings", { type: PING, flags: ACK }],
    ["empty data frames", { id: 1 }],
    ["small window updates", { type: WINDOW_UPDATE, id: 1, length: 1 }],
    ["updates of closed streams", { type: WINDOW_UPDATE, id: 3, length: 100_000 }],
  ])("stops reading from an agent that sends too many %s", (_what, frame) => {
    const { yamux, sent, receive, counted } = connection({ countable: 50 });
    yamux.open();
    yamux.open().destroy();
    receive(...Array.from({ length: 100 }, () => frame));
    expect(counted()).toBe(51);
    expect(sent.filter(({ type }) => type === PING).length).toBeLessThanOrEqual(58);
  });
});

/** Frames of an agent that obeys the protocol, for the streams 1 and 3. */
const validFrames = fc.array(
  fc.oneof(
    fc.record({ id: fc.constantFrom(1, 3), data: fc.uint8Array({ maxLength: 3000 }).map(Buffer.from) }),
    fc.record({ type: fc.constant(PING), flags: fc.constant(SYN), length: fc.nat(1000) }),
    fc.record({ type: fc.constant(WINDOW_UPDATE), id: fc.constantFrom(1, 3), length: fc.nat(10_000) }),
  ),
  { maxLength: 40 },
);

/** Splits bytes at random places. */
function split(all: Buffer, places: readonly number[]): Buffer[] {
  const cuts = [...new Set(places.map((place) => place % (all.length + 1)))].sort((a, b) => a - b);
  return [...cuts, all.length].map((end, index) => all.subarray(cuts[index - 1] ?? 0, end));
}

it("reads the same data and sends the same answers, however the bytes are split", async () => {
  await fc.assert(
    fc.asyncProperty(validFrames, fc.array(fc.nat(), { maxLength: 100 }), async (frames, places) => {
      const { yamux, sent, failed } = connection();
      const streams = [yamux.open(), yamux.open()];
      const read = Promise.all(streams.map((stream) => buffer(stream)));
      const ends = [1, 3].map((id) => ({ type: WINDOW_UPDATE, flags: FIN, id }));
      for (const part of split(Buffer.concat([...frames, ...ends].map(yamuxFrame)), places))
        yamux.receive(part);
      const expected = [1, 3].map((id) =>
        Buffer.concat(frames.flatMap((frame) => ("data" in frame && frame.id === id ? [frame.data] : []))),
      );
      expect(await read).toEqual(expected);
      const pings = frames.filter((frame) => "type" in frame && frame.type === PING);
      expect(sent.filter(({ type }) => type === PING).map(({ length }) => length)).toEqual(
        pings.map((frame) => ("length" in frame ? frame.length : 0)),
      );
      expect(failed).not.toHaveBeenCalled();
    }),
  );
});

it("keeps its limits with any frames", async () => {
  const hostile = fc.record({
    version: fc.constantFrom(0, 0, 0, 0, 0, 0, 1),
    type: fc.constantFrom(DATA, DATA, DATA, WINDOW_UPDATE, WINDOW_UPDATE, PING, GO_AWAY, 9),
    flags: fc.constantFrom(0, 0, 0, 0, SYN, ACK, FIN, RST, 0xffff),
    id: fc.constantFrom(1, 1, 1, 3, 3, 5, 0, 2, 0xffffffff),
    data: fc.nat(100_000).map((size) => bytes(size)),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(hostile, { maxLength: 30 }), async (frames) => {
      const { yamux, failed, receive } = connection({ countable: 20 });
      // The first stream has no consumer, and the second stream is closed.
      const stream = yamux.open();
      yamux.open().destroy();
      for (const frame of frames) {
        const { data } = frame;
        receive(frame.type === DATA ? frame : { ...frame, data: bytes(0), length: data.length });
        await turn();
      }
      let unread = 0;
      stream.on("data", (chunk: Buffer) => {
        unread += chunk.length;
      });
      for (let count = 0; count < 5; count += 1) await turn();
      expect(unread).toBeLessThanOrEqual(WINDOW + 16 * 1024);
      expect(failed.mock.calls.length).toBeLessThanOrEqual(1);
    }),
  );
});
