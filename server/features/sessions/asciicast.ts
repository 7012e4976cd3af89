import type { SessionRecord } from "../../db/generated/sqlite/client.ts";

type Chunk = Pick<SessionRecord, "time" | "message" | "width" | "height">;

/** A recording as asciicast version 2: a line of what it is, then a line for each output or change of size. */
export async function* asciicast(chunks: AsyncIterable<Chunk>): AsyncGenerator<string> {
  let begin: number | undefined;
  let size = "";
  // Clocks of instances differ, and time in a recording only goes on.
  let at = 0;
  for await (const { time, message, width, height } of chunks) {
    if (begin === undefined) {
      begin = time.getTime();
      const timestamp = Math.floor(begin / 1000);
      yield `{"version":2,"width":${width},"height":${height},"timestamp":${timestamp}}\n`;
    } else if (size !== `${width}x${height}`) {
      yield `[${at},"r","${width}x${height}"]\n`;
    }
    size = `${width}x${height}`;
    at = Math.max(at, (time.getTime() - begin) / 1000);
    yield `[${at},"o",${message}]\n`;
  }
}
