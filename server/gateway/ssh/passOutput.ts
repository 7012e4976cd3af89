import type { Readable, Writable } from "node:stream";
import type { ServerChannel } from "ssh2";
import type { OutputStream } from "../../features/sessions/addEntries.ts";
import { passOn, write } from "./bounds.ts";

/** What the library remembers of a write that waits for room, and does not forget when it is done. */
interface PendingWrite {
  _chunk?: unknown;
  _chunkcb?: unknown;
  _chunkErr?: unknown;
  _chunkcbErr?: unknown;
}

/**
 * Passes both outputs of a device to a client, as fast as it takes them. They share the client's window, and the library
 * loses count where both wait for it: one would be sent twice, and the other never. So they take turns.
 * @param note called with output before it is passed on; the output waits for it
 * @returns resolves when all is passed on; never, if the channel ends before
 */
export async function passOutput(
  channel: ServerChannel,
  stdout: Readable,
  stderr: Readable,
  note: (stream: OutputStream, data: Buffer) => Promise<void>,
): Promise<void> {
  let turn: Promise<void> = Promise.resolve();
  const inTurn = (to: Writable) => async (data: Buffer) => {
    turn = turn.then(async () => {
      await write(to, data);
      const waiting = channel as unknown as PendingWrite;
      waiting._chunk = waiting._chunkcb = waiting._chunkErr = waiting._chunkcbErr = undefined;
    });
    await turn;
  };
  const noted = (stream: OutputStream, to: Writable) => {
    const pass = inTurn(to);
    return async (data: Buffer) => {
      await note(stream, data);
      await pass(data);
    };
  };
  await Promise.all([
    passOn(stdout, noted("stdout", channel)),
    passOn(stderr, noted("stderr", channel.stderr)),
  ]);
}
