import { hash } from "node:crypto";
import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import { recordChange } from "../../changes/recordChange.ts";
import type { Device } from "../../db/generated/sqlite/client.ts";
import { insertRows, updateRow } from "../../db/sql/rows.ts";
import { leaveToCommit, readRows, type SqlClient, sql } from "../../db/sql/sql.ts";
import { inSqlTransaction, within } from "../../db/sql/transaction.ts";
import { ForbiddenError, NotFoundError, refersToMissingRow } from "../../errors.ts";
import { deviceToken } from "../../http/access/tokens.ts";
import type { Handler } from "../../http/handler.ts";
import type { RequestFacts } from "../../http/listener/requestFacts.ts";
import type { Services } from "../../services.ts";
import { countPending } from "./deviceCounts.ts";
import { provesKey } from "./deviceProof.ts";
import { declaredDevice } from "./objects.ts";

/**
 * Returns the uid of a device. It is the digest of the MAC address, public key and tenant id, exactly as the agent sent
 * them (rules section 7, step 2).
 */
export function deviceUid(device: {
  readonly mac: string;
  readonly publicKey: string;
  readonly tenantId: string;
}): string {
  const { mac, publicKey, tenantId } = device;
  return hash("sha256", `{Identity:{MAC:"${mac}"},PublicKey:"${publicKey}",TenantID:"${tenantId}"}`);
}

/**
 * Returns the name of a new device. This is the host name, or the MAC address if the agent sent no host name.
 * Characters that are invalid in a device name become hyphens (rules section 20).
 */
function firstName(hostname: string | undefined, mac: string): string {
  return (hostname || mac).toLowerCase().replaceAll(/[^a-z0-9_-]/g, "-");
}

const full = ({ settings }: Services) =>
  new ForbiddenError(
    `the namespace has the maximum of ${settings.maximumPendingDevices} pending devices: accept, reject or delete some`,
  );

/**
 * Checks that the namespace may have one more pending device. A limit is necessary, because any client can enroll
 * devices.
 * @throws ForbiddenError the namespace has the maximum number of pending devices
 */
async function checkPending(services: Services, tx: SqlClient, tenantId: string): Promise<void> {
  const limit = services.settings.maximumPendingDevices;
  if (limit <= 0) return;
  if ((await countPending(tx, tenantId)) < limit) return;
  services.enrollments.noteFull(tenantId, services.now());
  throw full(services);
}

type Report = z.output<NonNullable<PublicOperations["authDevice"]["body"]>>;

/** Converts an agent's report to the database columns of the device. */
const reportedOf = (services: Services, { info }: Report, request: RequestFacts) => ({
  infoId: info.id,
  infoPrettyName: info.pretty_name,
  infoVersion: info.version,
  infoArch: info.arch,
  infoPlatform: info.platform,
  offline: false,
  remoteAddr: request.address,
  ...services.positionOf(request.address),
});

/** Data of an enrolled device, for the device's token and for the response. */
interface Enrollment {
  readonly name: string;
  /** Name of the namespace. */
  readonly namespace: string;
  /**
   * The namespace's setting for proofs. A proof shows that an agent has the private key of its device. With `required`,
   * reports without a proof are rejected.
   */
  readonly deviceProof: string;
  readonly createdAt: Date;
}

/**
 * Returns the enrollment of a device. Returns undefined if the device is not enrolled, or if its report contains
 * changes. The database is read for every report. So a rename, or the deletion of the device or namespace, takes effect
 * immediately on all instances.
 */
async function unchangedEnrollment(
  services: Services,
  uid: string,
  reported: ReturnType<typeof reportedOf>,
): Promise<Enrollment | undefined> {
  const { infoId, infoPrettyName, infoVersion, infoArch, infoPlatform, offline, remoteAddr } = reported;
  const { latitude, longitude } = reported;
  const [enrollment] = await readRows<Enrollment>(
    services.db,
    sql`SELECT "Device"."name" AS name, "Namespace"."name" AS namespace, "Namespace"."deviceProof" AS "deviceProof",
      "Device"."createdAt" AS "createdAt" FROM "Device"
    JOIN "Namespace" ON "Namespace"."tenantId" = "Device"."tenantId"
    WHERE "Device"."uid" = ${uid} AND "Device"."infoId" = ${infoId}
      AND "Device"."infoPrettyName" = ${infoPrettyName} AND "Device"."infoVersion" = ${infoVersion}
      AND "Device"."infoArch" = ${infoArch} AND "Device"."infoPlatform" = ${infoPlatform}
      AND "Device"."offline" = ${offline} AND "Device"."remoteAddr" = ${remoteAddr}
      AND "Device"."latitude" = CAST(${latitude} AS DOUBLE PRECISION)
      AND "Device"."longitude" = CAST(${longitude} AS DOUBLE PRECISION)`,
  );
  return enrollment;
}

interface ReportedNamespace {
  readonly namespace: string;
  readonly deviceProof: string;
  /** A Boolean value as a number: 1 if the device is enrolled, 0 if it is not. */
  readonly known: number | bigint;
}

/**
 * Reads the namespace of a report, and checks whether the device is enrolled. The service calls this function before it
 * writes anything, because the report may come from an unknown client.
 */
async function reportedNamespace(
  services: Services,
  tenantId: string,
  uid: string,
): Promise<ReportedNamespace | undefined> {
  const [row] = await readRows<ReportedNamespace>(
    services.db,
    sql`SELECT "name" AS namespace, "deviceProof", (SELECT COUNT(*) FROM "Device" WHERE "uid" = ${uid}) AS known
      FROM "Namespace" WHERE "tenantId" = ${tenantId}`,
  );
  return row;
}

/** The columns of a device that are set when it enrolls. */
type FirstColumns = Pick<Device, "uid" | "tenantId" | "mac" | "publicKey" | "name">;
/** The columns of a device that each report updates. */
type UpdatedColumns = ReturnType<typeof reportedOf> & Pick<Device, "lastSeen">;

/** Updates an enrolled device. Returns undefined if the device is not enrolled. */
async function renew(
  tx: SqlClient,
  uid: string,
  update: UpdatedColumns,
): Promise<Pick<Device, "name" | "createdAt"> | undefined> {
  const [device] = await readRows<Pick<Device, "name" | "createdAt">>(
    tx,
    sql`SELECT "name", "createdAt" FROM "Device" WHERE "uid" = ${uid}`,
  );
  if (device !== undefined) await leaveToCommit(tx, updateRow(tx, "Device", { uid }, update));
  return device;
}

/**
 * Enrolls a new device.
 * @throws ForbiddenError see {@link checkPending}
 */
async function enroll(
  services: Services,
  tx: SqlClient,
  request: RequestFacts,
  first: FirstColumns,
  update: UpdatedColumns,
): Promise<Pick<Device, "name" | "createdAt">> {
  const { uid, tenantId } = first;
  const { lastSeen: now } = update;
  await checkPending(services, tx, tenantId);
  const device = { ...first, ...update, status: "pending", publicUrl: false, createdAt: now };
  await insertRows(tx, "Device", [{ ...device, statusUpdatedAt: now }]);
  const recorded = recordChange(within(services, tx), {
    tenantId,
    caller: { kind: "device", tenant: tenantId, uid },
    request,
    operation: "authDevice",
    object: { kind: "device", id: uid },
    before: null,
    after: declaredDevice(device),
  });
  await leaveToCommit(tx, recorded);
  return device;
}

/**
 * Name of the transaction queue (lane) for the enrollments of all namespaces. Enrollments in one lane share
 * transactions. In separate transactions, most concurrent enrollments would conflict, because each enrollment changes
 * the count of pending devices.
 */
const LANE = "enrollments";

/**
 * Enrolls a new device, or updates an enrolled device.
 * @throws NotFoundError the namespace does not exist; nothing is stored
 * @throws ForbiddenError see {@link checkProof}. For a new device, see also {@link checkPending}.
 * @throws RateLimitedError too many new devices were enrolled from the client address
 * @throws BusyError too many devices are enrolling at the same time
 */
async function store(
  services: Services,
  uid: string,
  body: Report,
  request: RequestFacts,
  proven: boolean,
): Promise<Enrollment> {
  const { enrollments, settings } = services;
  const { tenant_id: tenantId, public_key: publicKey, hostname, identity } = body;
  const unknown = () => new NotFoundError("tenant_id: no namespace has this id");
  const row = await reportedNamespace(services, tenantId, uid);
  if (!row) throw unknown();
  checkProof(row, proven);
  const mac = identity?.mac ?? "";
  const reported = reportedOf(services, body, request);
  const first = { uid, tenantId, mac, publicKey, name: firstName(hostname, mac) };
  const isKnown = Number(row.known) > 0;
  const checkFull = () => {
    if (enrollments.isFull(tenantId, services.now())) throw full(services);
  };
  if (!isKnown) checkFull();
  try {
    const device = await enrollments.inTurn({ tenantId, network: request.network, isKnown }, async () => {
      if (!isKnown) {
        checkFull();
        enrollments.count(request.network, settings.enrollmentsPerAddress, services.now());
      }
      return inSqlTransaction(services, LANE, async (tx) => {
        const update = { ...reported, lastSeen: services.now() };
        return (await renew(tx, uid, update)) ?? enroll(services, tx, request, first, update);
      });
    });
    const { namespace, deviceProof } = row;
    return { name: device.name, createdAt: device.createdAt, namespace, deviceProof };
  } catch (error) {
    // The namespace was deleted during the enrollment.
    throw refersToMissingRow(error) ? unknown() : error;
  }
}

/**
 * If the namespace requires proofs, checks that a report has a proof.
 * @throws ForbiddenError the namespace requires proofs, and the report has none
 */
function checkProof({ deviceProof }: Pick<Enrollment, "deviceProof">, proven: boolean): void {
  if (proven || deviceProof !== "required") return;
  throw new ForbiddenError(
    "proof: the namespace requires devices to prove their private key (settings.device_proof); update the agent",
  );
}

/**
 * Updates the last activity of the sessions that an agent reports as running. Does not update closed sessions, or
 * sessions of other devices.
 */
async function keepAlive(services: Services, deviceUid: string, sessions: readonly string[]): Promise<void> {
  await services.db.session.updateMany({
    where: { uid: { in: [...sessions] }, deviceUid, closedAt: null, viaGateway: false },
    data: { lastSeen: services.now() },
  });
}

/**
 * Handles the enrollment or the report of an agent (rules section 7). A report does not change the name, status and
 * tags of an enrolled device, because an administrator sets them. If a report contains other changes, the service
 * stores them before it responds. If a report contains no changes, the service stores only the time of the report,
 * after the response (see `Heartbeats`).
 */
export const authDevice: Handler<PublicOperations["authDevice"]> = async ({ services, body, request }) => {
  const { tenant_id: tenant, public_key: publicKey, identity } = body;
  const uid = deviceUid({ mac: identity?.mac ?? "", publicKey, tenantId: tenant });
  const reported = reportedOf(services, body, request);
  const proven = provesKey(services, body);
  let enrollment = await unchangedEnrollment(services, uid, reported);
  if (enrollment) {
    checkProof(enrollment, proven);
    services.heartbeats.beat(uid, services.now());
  } else enrollment = await store(services, uid, body, request, proven);
  if (body.sessions?.length) await keepAlive(services, uid, body.sessions);
  services.metrics.heartbeats.inc();
  const { name, namespace, createdAt } = enrollment;
  const token = await deviceToken(services, { uid, tenant, proven, enrolledAt: createdAt });
  // The agent key is the public key with which the gateway logs in to agents. Agents that support proofs can pin this
  // key. For other agents, the response does not contain the key, as in version 0.19.
  const agentKey = proven ? await services.agentKey.publicKey() : undefined;
  return { uid, token, name, namespace, ...(agentKey !== undefined && { agent_key: agentKey }) };
};
