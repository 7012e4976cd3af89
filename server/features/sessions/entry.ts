import type { InternalOperations, sessions } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import type { Session } from "../../db/generated/sqlite/client.ts";
import { inTransaction } from "../../db/sql/transaction.ts";
import { ConflictError, ForbiddenError, isDatabaseError, NotFoundError } from "../../errors.ts";
import { checkTexts } from "../../http/contract/validation.ts";
import type { Handler } from "../../http/handler.ts";
import type { Services } from "../../services.ts";
import { addEntries, BOUNDED_EVENTS_MAX } from "./addEntries.ts";
import { changeSession, unknownSession } from "./changeSession.ts";
import { presentSession } from "./presentSession.ts";
import { appendRecord } from "./records.ts";

/** The error for a new session in a namespace whose recordings are full. */
export class RecordingsFullError extends ForbiddenError {
  constructor() {
    super("the recordings of the namespace are full");
  }
}

const unknownDevice = () => new NotFoundError("device_uid: no accepted device has this uid");

/** The column values of a new session. */
type SessionColumns = Pick<Session, "uid" | "deviceUid" | "username" | "ipAddress" | "type" | "term"> &
  Partial<Pick<Session, "instanceId" | "keyFingerprint" | "userId" | "viaGateway">>;

/**
 * Stores the start of a session (rules section 17.1).
 * @returns the tenant id of the namespace
 * @throws NotFoundError no accepted device has the uid
 * @throws RecordingsFullError the namespace records sessions, and its recordings are full
 * @throws ConflictError a session with the uid already exists
 */
export async function beginSession(services: Services, login: SessionColumns): Promise<string> {
  const { deviceUid, ipAddress } = login;
  return inTransaction(services, async (tx) => {
    const device = await tx.device.findUnique({
      where: { uid: deviceUid, status: "accepted" },
      select: { tenantId: true, namespace: { select: { sessionRecord: true } } },
    });
    if (!device) throw unknownDevice();
    const now = services.now();
    const { tenantId, namespace } = device;
    if (namespace.sessionRecord && services.fullRecordings.refuses(tenantId)) throw new RecordingsFullError();
    await tx.session.create({
      data: { ...login, tenantId, startedAt: now, lastSeen: now, ...services.positionOf(ipAddress) },
      select: { uid: true },
    });
    return tenantId;
  }).catch((error: unknown) => {
    if (error instanceof RecordingsFullError) services.metrics.refusedRecordings.inc();
    throw isDatabaseError(error, "P2002") ? new ConflictError("uid: another session has this uid") : error;
  });
}

export const createSession: Handler<InternalOperations["createSession"]> = async ({ services, body }) => {
  const { uid, device_uid: deviceUid, ip_address: ipAddress, username, type, term } = body;
  const tenantId = await beginSession(services, { uid, deviceUid, username, ipAddress, type, term });
  const session = await presentSession(services, tenantId, uid);
  // The device was deleted, together with the session, after the session was stored.
  if (session === undefined) throw unknownDevice();
  return session;
};

export const updateSession: Handler<InternalOperations["updateSession"]> = async (context) => {
  const { services, params, body } = context;
  await changeSession(services, { uid: params.uid }, body);
  return undefined;
};

export const keepSessionAlive: Handler<InternalOperations["keepSessionAlive"]> = async (context) => {
  const { services, params } = context;
  const { count } = await services.db.session.updateMany({
    where: { uid: params.uid, closedAt: null },
    data: { lastSeen: services.now() },
  });
  if (count === 0) throw new NotFoundError("the session does not exist, or is closed");
  return undefined;
};

export const finishSession: Handler<InternalOperations["finishSession"]> = async ({ services, params }) => {
  const { uid } = params;
  const { count } = await services.db.session.updateMany({
    where: { uid, closedAt: null },
    data: { closedAt: services.now() },
  });
  if (count > 0) return undefined;
  const session = await services.db.session.findUnique({ where: { uid }, select: { uid: true } });
  if (!session) throw unknownSession();
  return undefined;
};

/**
 * Stores an event of a session.
 * @throws InvalidError the databases cannot store the string in `type`
 * @throws NotFoundError the session does not exist
 * @throws ForbiddenError the session has the maximum number of bounded events
 */
export async function storeEvent(
  services: Services,
  uid: string,
  event: z.output<typeof sessions.sessionEvent>,
): Promise<void> {
  checkTexts(event.type, "type");
  const { seat, type, timestamp, data } = event;
  const entry = { kind: "event", seat, type, at: new Date(timestamp), data } as const;
  const added = await inTransaction(services, (tx) => addEntries(services, tx, { uid }, [entry]));
  if (added === undefined) throw unknownSession();
  if (added.droppedEvents > 0) {
    throw new ForbiddenError(
      `a session can store at most ${BOUNDED_EVENTS_MAX} events of types with a limit`,
    );
  }
}

export const addSessionEvent: Handler<InternalOperations["addSessionEvent"]> = async (context) => {
  await storeEvent(context.services, context.params.uid, context.body);
  return undefined;
};

export const storeSessionRecord: Handler<InternalOperations["storeSessionRecord"]> = async (context) => {
  const { services, params, body } = context;
  const { uid } = params;
  if (body !== undefined) {
    await appendRecord(services, { uid }, Number(params.seat), body);
    return undefined;
  }
  // A request without a body reports the end of a recording. All chunks of the recording are already stored.
  const session = await services.db.session.findUnique({ where: { uid }, select: { uid: true } });
  if (!session) throw unknownSession();
  return undefined;
};
