import type { PublicOperations, sessions } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import { recordChange } from "../../changes/recordChange.ts";
import { inTransaction, within } from "../../db/sql/transaction.ts";
import { ForbiddenError, NotFoundError, WrongTypeError } from "../../errors.ts";
import type { Handler } from "../../http/handler.ts";
import { pieceTurns } from "../../http/limits/pieces.ts";
import type { Services } from "../../services.ts";
import { addEntries } from "./addEntries.ts";
import { refuseUnprovenDevice, type SessionKey, sessionFor, unknownSession } from "./changeSession.ts";

type Chunk = z.output<typeof sessions.recordChunk>;

/**
 * Adds a chunk to the recording of a seat (rules section 17.5 and 17.6). A closed session still accepts late chunks:
 * see {@link addEntries}.
 * @throws WrongTypeError the session or seat in the body differs from the session or seat in the path
 * @throws NotFoundError the session does not exist
 * @throws ForbiddenError recording is off, the session has ended, or the recording has reached its limit
 */
export async function appendRecord(
  services: Services,
  key: SessionKey,
  seat: number,
  chunk: Chunk,
): Promise<void> {
  if (chunk.uid !== key.uid) throw new WrongTypeError("uid must match the session in the path");
  if (chunk.seat !== seat) throw new WrongTypeError("seat must match the seat in the path");
  const { message: text, stream = "stdout", width, height } = chunk;
  const at = services.now();
  const entry = { kind: "output", at, seat, stream, text, size: { width, height } } as const;
  const added = await inTransaction(services, (tx) => addEntries(services, tx, key, [entry]));
  if (added === undefined) throw unknownSession();
  if (added.unrecorded !== undefined) throw new ForbiddenError(added.unrecorded);
}

export const recordSession: Handler<PublicOperations["recordSession"]> = async (context) => {
  const { services, identity, params, body } = context;
  const key = sessionFor(identity, params.uid);
  await refuseUnprovenDevice(services, identity, params.uid);
  // A chunk can be large. Without this wait, one turn of the event loop would store all chunks that have arrived.
  await pieceTurns.wait(identity.tenant);
  await appendRecord(services, key, Number(params.seat), body);
  return undefined;
};

/**
 * Deletes the recording of a seat. If another seat of the session has a recording, the session is still marked as
 * recorded.
 */
export const deleteSessionRecord: Handler<PublicOperations["deleteSessionRecord"]> = async (context) => {
  const { services, identity, params, request } = context;
  const { tenant: tenantId, caller } = identity;
  const { uid } = params;
  const seat = Number(params.seat);
  await inTransaction(services, async (tx) => {
    const { count } = await tx.sessionRecord.deleteMany({
      where: { sessionUid: uid, seat, session: { tenantId } },
    });
    if (count === 0) throw new NotFoundError("the session does not exist, or the seat has no recording");
    const remaining = await tx.sessionRecord.findFirst({
      where: { sessionUid: uid },
      select: { sequence: true },
    });
    if (remaining === null) {
      await tx.session.update({ where: { uid }, data: { recorded: false }, select: { uid: true } });
    }
    await recordChange(within(services, tx), {
      tenantId,
      caller,
      request,
      operation: "deleteSessionRecord",
      object: { kind: "session", id: uid },
      before: { recorded_seat: seat },
      after: { recorded_seat: null },
    });
  });
  return undefined;
};

export const getSessionRecordStatus: Handler<PublicOperations["getSessionRecordStatus"]> = async (
  context,
) => {
  const { services, identity } = context;
  const { sessionRecord } = await services.db.namespace.findUniqueOrThrow({
    where: { tenantId: identity.tenant },
    select: { sessionRecord: true },
  });
  return sessionRecord;
};
