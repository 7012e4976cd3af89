import { Readable } from "node:stream";
import { JSON_TYPE, type PublicOperations, sessions } from "@gatehouse-access/sdk/contract";
import type { SessionRecord } from "../../db/generated/sqlite/client.ts";
import { NotFoundError } from "../../errors.ts";
import type { Handler } from "../../http/handler.ts";
import type { RequestFacts } from "../../http/listener/requestFacts.ts";
import type { Services } from "../../services.ts";

type Chunk = Pick<SessionRecord, "time" | "message" | "stream" | "width" | "height">;

/**
 * Returns a recording as asciicast version 2: a header line, then a line for each output or change of size. When the
 * output stream changes, a marker line contains the name of the new stream.
 */
export async function* asciicast(chunks: AsyncIterable<Chunk>): AsyncGenerator<string> {
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

/** Maximum number of chunks in memory. A whole recording may not fit into memory. */
const BATCH = 100;

/** The recording of one seat. */
interface Recording {
  readonly uid: string;
  readonly seat: number;
  readonly tenantId: string;
}

/** Reads the next chunks of a recording in the order of their sequence numbers, which is the order of arrival. */
function readBatch(
  services: Services,
  { uid, seat, tenantId }: Recording,
  after: number,
): Promise<SessionRecord[]> {
  return services.db.sessionRecord.findMany({
    where: { sessionUid: uid, seat, sequence: { gt: after }, session: { tenantId } },
    orderBy: { sequence: "asc" },
    take: BATCH,
  });
}

async function* chunksFrom(
  services: Services,
  recording: Recording,
  first: readonly SessionRecord[],
): AsyncGenerator<SessionRecord> {
  let batch = first;
  for (;;) {
    yield* batch;
    const last = batch.at(-1);
    if (last === undefined || batch.length < BATCH) return;
    batch = await readBatch(services, recording, last.sequence);
  }
}

/** Returns a recording as a JSON array, as the specification defines it. */
async function* jsonArray(chunks: AsyncIterable<SessionRecord>, tenantId: string): AsyncGenerator<string> {
  let separator = "[";
  for await (const { sessionUid, seat, time, message, stream, width, height } of chunks) {
    const before = JSON.stringify({ uid: sessionUid, seat, tenant_id: tenantId, time: time.toISOString() });
    // The specification has no field for the stream, so the field is omitted for the default stream.
    const mark = stream === "stdout" ? "" : `,"stream":${JSON.stringify(stream)}`;
    // The stored message is already JSON text.
    yield `${separator}${before.slice(0, -1)},"message":${message}${mark},"width":${width},"height":${height}}`;
    separator = ",";
  }
  yield "]";
}

/**
 * Returns the text type that the client prefers for a recording: the type with the highest weight in `Accept`. Returns
 * undefined if all text types have weight 0, or if JSON has a higher weight (rules D29).
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
  const first = await readBatch(services, recording, 0);
  if (first.length === 0) throw new NotFoundError("the session does not exist, or the seat has no recording");
  const chunks = chunksFrom(services, recording, first);
  const text = preferredTextType(request.accept);
  if (text !== undefined) {
    header("Content-Type", text === sessions.ASCIICAST ? text : `${text}; charset=utf-8`);
    return Readable.from(asciicast(chunks));
  }
  header("Content-Type", "application/json; charset=utf-8");
  return Readable.from(jsonArray(chunks, identity.tenant));
};
