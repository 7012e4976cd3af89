import { type PublicOperations, type Role, TOTAL_COUNT } from "@gatehouse-access/sdk/contract";
import { recordChange } from "../../changes/recordChange.ts";
import { sql } from "../../db/sql/sql.ts";
import { inTransaction, within } from "../../db/sql/transaction.ts";
import type { Handler } from "../../http/handler.ts";
import { listRows } from "../../lists/listRows.ts";
import { shownTo } from "../devices/presentDevice.ts";
import { changeSession, refuseUnprovenDevice, sessionFor, unknownSession } from "./changeSession.ts";
import { presentSession, presentSessions } from "./presentSession.ts";

const table = { from: sql`"Session"`, id: sql`"Session"."uid"`, fields: {} };

export const getSessions: Handler<PublicOperations["getSessions"]> = async (context) => {
  const { services, identity, query, header } = context;
  const { key_fingerprint: fingerprint, user_id: userId } = query;
  const conditions = [
    sql`"Session"."tenantId" = ${identity.tenant}`,
    ...(fingerprint === undefined ? [] : [sql`"Session"."keyFingerprint" = ${fingerprint}`]),
    ...(userId === undefined ? [] : [sql`"Session"."userId" = ${userId}`]),
  ];
  const { ids, total } = await listRows(services, table, {
    where: sql.join(conditions, " AND "),
    filter: undefined,
    trailing: "and",
    sort: { by: [sql`"Session"."startedAt"`, table.id], direction: "desc" },
    page: query.page,
    perPage: query.per_page,
  });
  header(TOTAL_COUNT, total);
  if (ids.length === 0) return [];
  const presented = await presentSessions(services, identity.tenant, ids);
  return presented.map((session) => withDeviceFor(identity.role, session));
};

type WireSession = NonNullable<Awaited<ReturnType<typeof presentSession>>>;

const withDeviceFor = (role: Role, session: WireSession): WireSession => ({
  ...session,
  device: shownTo(role, session.device),
});

export const getSession: Handler<PublicOperations["getSession"]> = async (context) => {
  const { services, identity, params, query } = context;
  const after = Number(query.events_after ?? 0);
  const session = await presentSession(services, identity.tenant, params.uid, after);
  if (session === undefined) throw unknownSession();
  return withDeviceFor(identity.role, session);
};

export const setSessionAuthenticated: Handler<PublicOperations["setSessionAuthenticated"]> = async (
  context,
) => {
  const { services, identity, params, body } = context;
  await refuseUnprovenDevice(services, identity, params.uid);
  await changeSession(services, sessionFor(identity, params.uid), body);
  return undefined;
};

/** Closes a session. The service then rejects keep-alives of the session, and the SSH server ends the session. */
export const closeSession: Handler<PublicOperations["closeSession"]> = async (context) => {
  const { services, identity, params, body, request } = context;
  const { tenant: tenantId, caller } = identity;
  const where = { uid: params.uid, tenantId, deviceUid: body.device };
  await inTransaction(services, async (tx) => {
    const session = await tx.session.findUnique({ where, select: { closedAt: true } });
    if (!session) throw unknownSession();
    if (session.closedAt !== null) return;
    await tx.session.update({ where, data: { closedAt: services.now() }, select: { uid: true } });
    await recordChange(within(services, tx), {
      tenantId,
      caller,
      request,
      operation: "closeSession",
      object: { kind: "session", id: params.uid },
      before: { closed: false },
      after: { closed: true },
    });
  });
  return undefined;
};
