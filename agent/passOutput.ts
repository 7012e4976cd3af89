import type { Readable, Writable } from "node:stream";
import type { ServerChannel } from "ssh2";

/** What the library remembers of a write that waits for room, and does not forget when it is done. */
interface PendingWrite {
  _chunk?: unknown;
  _chunkcb?: unknown;
  _chunkErr?: unknown;
  _chunkcbErr?: unknown;
}

/**
 * Passes both outputs of a program to a client, as fast as it takes them. They share the client's window, and the library
 * loses count where both wait for it: one would be sent twice, and the other never. So they take turns.
 * @returns resolves when all is passed on; never, if the channel ends before
 */
export async function passOutput(channel: ServerChannel, stdout: Readable, stderr: Readable): Promise<void> {
  let last: Promise<void> = Promise.resolve();
  const write = (to: Writable, data: Buffer) =>
    new Promise<void>((resolve) => {
      to.write(data, () => {
        const waiting = channel as unknown as PendingWrite;
        waiting._chunk = waiting._chunkcb = waiting._chunkErr = waiting._chunkcbErr = undefined;
        resolve();
      });
    });
  const pass = async (from: Readable, to: Writable) => {
    for await (const data of from) {
      last = last.then(() => write(to, data as Buffer));
      await last;
    }
  };
  // Reading ends early at a hang-up.
  await Promise.allSettled([pass(stdout, channel), pass(stderr, channel.stderr)]);
}
