import { Readable } from "node:stream";
import { JSON_TYPE, type PublicOperations, sessions } from "@gatehouse-access/sdk/contract";
import type { SessionRecord } from "../../db/generated/sqlite/client.ts";
import { NotFoundError } from "../../errors.ts";
import type { Handler } from "../../http/handler.ts";
import { PieceTurns } from "../../http/limits/pieces.ts";
import type { RequestFacts } from "../../http/listener/requestFacts.ts";
import type { Services } from "../../services.ts";

type Chunk = Pick<SessionRecord, "time" | "message" | "stream" | "width" | "height">;

/**
 * Returns a recording in the format asciicast version 2: a header line, and a line for each output or change of the
 * terminal size. When the output stream changes, a marker line contains the name of the new stream.
 */
async function* asciicast(chunks: AsyncIterable<Chunk>): AsyncGenerator<string> {
  let begin: number | undefined;
  let size = "";
  let stream = "stdout";
  // The clocks of instances differ, but the time in a recording must never decrease.
  let at = 0;
  for await (const { time, message, stream: written, width, height } of chunks) {
    if (begin === undefined) {
      begin = time.getTime();
      const timestamp = Math.floor(begin / 1000);
      yield `{"version":2,"width":${width},"height":${height},"timestamp":${timestamp}}\n`;
    } else if (size !== `${width}x${height}`) {
      yield `[${at},"r","${width}x${height}"]\n`;
    }
    size = `${width}x${height}`;
    at = Math.max(at, (time.getTime() - begin) / 1000);
    if (written !== stream) yield `[${at},"m",${JSON.stringify(written)}]\n`;
    stream = written;
    yield `[${at},"o",${message}]\n`;
  }
}

/** Maximum number of chunks in memory. A whole recording may be larger than the memory. */
const BATCH = 100;
/**
 * The number of characters that a batch should have. If a batch has more characters, the next batch has fewer chunks,
 * because reading more would block the service.
 */
const BATCH_CHARACTERS = 256 * 1024;

/** Number of chunks in the first batch. Their length is unknown before they are read. */
const FIRST_BATCH = 8;

/**
 * Makes each batch wait for its own turn of the event loop. Without separate turns, a fast database would keep other
 * requests waiting until all recordings have been read.
 */
const turns = new PieceTurns();

/** The recording of one seat. */
interface Recording {
  readonly uid: string;
  readonly seat: number;
  readonly tenantId: string;
}

/** Reads the next chunks of a recording in the order of their sequence numbers. The chunks arrived in this order. */
function readBatch(
  services: Services,
  { uid, seat, tenantId }: Recording,
  after: number,
  take: number,
): Promise<SessionRecord[]> {
  return services.db.sessionRecord.findMany({
    where: { sessionUid: uid, seat, sequence: { gt: after }, session: { tenantId } },
    orderBy: { sequence: "asc" },
    take,
  });
}

/**
 * Returns the number of chunks for the next batch, assuming that they have the same length as the chunks of the last
 * batch.
 */
function nextSize(batch: readonly SessionRecord[]): number {
  const characters = batch.reduce((all, { message }) => all + message.length, 0);
  const fitting = Math.floor((BATCH_CHARACTERS * batch.length) / Math.max(characters, 1));
  return Math.min(Math.max(fitting, 1), BATCH);
}

/** Reads a recording in batches, in the order of the sequence numbers. */
async function* chunksOf(services: Services, recording: Recording): AsyncGenerator<SessionRecord> {
  let size = FIRST_BATCH;
  let last = 0;
  for (;;) {
    await turns.wait(recording.tenantId);
    const batch = await readBatch(services, recording, last, size);
    yield* batch;
    if (batch.length < size) return;
    last = batch.at(-1)?.sequence ?? last;
    size = nextSize(batch);
  }
}

async function* withFirst<T>(first: T, others: AsyncIterable<T>): AsyncGenerator<T> {
  yield first;
  yield* others;
}

/** Returns a recording as a JSON array, in the format of the specification. */
async function* jsonArray(chunks: AsyncIterable<SessionRecord>, tenantId: string): AsyncGenerator<string> {
  let separator = "[";
  for await (const { sessionUid, seat, time, message, stream, width, height } of chunks) {
    const before = JSON.stringify({ uid: sessionUid, seat, tenant_id: tenantId, time: time.toISOString() });
    // The specification has no field for the stream, so the field is omitted if the stream has its default value.
    const mark = stream === "stdout" ? "" : `,"stream":${JSON.stringify(stream)}`;
    // The stored message is already a JSON string.
    yield `${separator}${before.slice(0, -1)},"message":${message}${mark},"width":${width},"height":${height}}`;
    separator = ",";
  }
  yield "]";
}

/**
 * Returns the text type that the client prefers for a recording. This is the type with the highest weight in `Accept`.
 * Returns undefined if all text types have weight 0, or if JSON has a higher weight (rules D29).
 */
function preferredTextType(accept: RequestFacts["accept"]): string | undefined {
  const weightOf = (type: string) => accept.get(type) ?? 0;
  const [type] = [...sessions.getSessionRecord.success.alternatives].sort(
    (a, b) => weightOf(b) - weightOf(a),
  );
  if (type === undefined || weightOf(type) === 0) return undefined;
  return weightOf(type) < weightOf(JSON_TYPE) ? undefined : type;
}

export const getSessionRecord: Handler<PublicOperations["getSessionRecord"]> = async (context) => {
  const { services, identity, params, request, header } = context;
  const recording = { uid: params.uid, seat: Number(params.seat), tenantId: identity.tenant };
  const stored = chunksOf(services, recording);
  const first = await stored.next();
  if (first.done) throw new NotFoundError("the session does not exist, or the seat has no recording");
  const chunks = withFirst(first.value, stored);
  const text = preferredTextType(request.accept);
  if (text !== undefined) {
    header("Content-Type", text === sessions.ASCIICAST ? text : `${text}; charset=utf-8`);
    return Readable.from(asciicast(chunks));
  }
  header("Content-Type", "application/json; charset=utf-8");
  return Readable.from(jsonArray(chunks, identity.tenant));
};
