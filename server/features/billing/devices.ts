import { type PublicOperations, TOTAL_COUNT } from "@gatehouse-access/sdk/contract";
import { readRows, sql } from "../../db/sql/sql.ts";
import { inTransaction, within } from "../../db/sql/transaction.ts";
import { InvalidError } from "../../errors.ts";
import type { Handler } from "../../http/handler.ts";
import type { Services } from "../../services.ts";
import { readDevices } from "../devices/readDevices.ts";
import { recordBilling } from "./trace.ts";

/** Maximum number of devices that the owner can choose from (rules section 18). */
const OFFERED = 3;

/**
 * Returns the uids of the accepted devices that have the most sessions. Among devices with the same number of sessions,
 * the device with the latest report comes first.
 */
async function mostUsed({ db }: Services, tenantId: string): Promise<string[]> {
  // The query uses SQL, because Prisma's `orderBy` with the size of a relation would count the sessions of all
  // namespaces.
  const rows = await readRows<{ uid: string }>(
    db,
    sql`SELECT "Device"."uid" FROM "Device" WHERE "Device"."tenantId" = ${tenantId} AND "Device"."status" = 'accepted'
      ORDER BY (SELECT COUNT(*) FROM "Session" WHERE "Session"."deviceUid" = "Device"."uid") DESC,
        "Device"."lastSeen" DESC, "Device"."uid" ASC
      LIMIT ${OFFERED}`,
  );
  return rows.map(({ uid }) => uid);
}

export const getDevicesMostUsed: Handler<PublicOperations["getDevicesMostUsed"]> = async (context) => {
  const { services, identity, header } = context;
  const uids = await mostUsed(services, identity.tenant);
  header(TOTAL_COUNT, uids.length);
  return readDevices(services, identity.tenant, uids);
};

/** Keeps the chosen devices accepted. All other accepted devices become pending (rules section 18). */
export const choiceDevices: Handler<PublicOperations["choiceDevices"]> = async (context) => {
  const { services, identity, body } = context;
  const accepted = { tenantId: identity.tenant, status: "accepted" };
  await inTransaction(services, async (tx) => {
    const kept = await tx.device.count({ where: { ...accepted, uid: { in: body.choices } } });
    if (kept !== body.choices.length) {
      throw new InvalidError("choices: each entry must be the uid of an accepted device of the namespace");
    }
    const { count } = await tx.device.updateMany({
      where: { ...accepted, uid: { notIn: body.choices } },
      data: { status: "pending", statusUpdatedAt: services.now() },
    });
    if (count === 0) return;
    const inside = { ...context, services: within(services, tx) };
    const [before, after] = [{ accepted: count + kept }, { accepted: kept, choices: body.choices }];
    await recordBilling(inside, "choiceDevices", after, before);
  });
  return undefined;
};
