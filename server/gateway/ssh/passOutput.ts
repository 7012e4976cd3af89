import type { Readable, Writable } from "node:stream";
import type { ServerChannel } from "ssh2";
import { passOn, write } from "./bounds.ts";

/** What the library remembers of a write that waits for room, and does not forget when it is done. */
interface Waiting {
  _chunk?: unknown;
  _chunkcb?: unknown;
  _chunkErr?: unknown;
  _chunkcbErr?: unknown;
}

/**
 * Passes both outputs of a device to a client, as fast as it takes them. They share the client's window, and the library
 * loses count where both wait for it: one would be sent twice, and the other never. So they take turns.
 * @param record records output before it is passed on
 * @returns resolves when all is passed on; never, if the channel ends before
 */
export async function passOutput(
  channel: ServerChannel,
  stdout: Readable,
  stderr: Readable,
  record: ((data: Buffer) => Promise<void>) | undefined,
): Promise<void> {
  let turn: Promise<void> = Promise.resolve();
  const inTurn = (to: Writable) => async (data: Buffer) => {
    turn = turn.then(async () => {
      await write(to, data);
      const waiting = channel as unknown as Waiting;
      waiting._chunk = waiting._chunkcb = waiting._chunkErr = waiting._chunkcbErr = undefined;
    });
    await turn;
  };
  const toStdout = inTurn(channel);
  const recorded = async (data: Buffer) => {
    await record?.(data);
    await toStdout(data);
  };
  await Promise.all([passOn(stdout, recorded), passOn(stderr, inTurn(channel.stderr))]);
}
