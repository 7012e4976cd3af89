import { HOUR, MINUTE, SECOND } from "@gatehouse-access/sdk/times";
import type { FastifyBaseLogger } from "fastify";
import { trimAuditTrail } from "../features/audit/audit.ts";
import { forgetRemovedDevices, refreshBilling } from "../features/billing/upkeep.ts";
import { foldDeviceCounts } from "../features/devices/deviceCounts.ts";
import { removeExpiredObjects } from "../features/expiredObjects.ts";
import { deliverMails } from "../features/outbox/deliverMails.ts";
import { RetentionBacklog } from "../features/sessions/RetentionBacklog.ts";
import { enforceQuotas } from "../features/sessions/recordingQuotas.ts";
import { foldRecordingSizes } from "../features/sessions/recordingSizes.ts";
import { trimSessions } from "../features/sessions/retention.ts";
import { removeDeletedTags, removeUnusedTags } from "../features/tags/tagUpkeep.ts";
import { forgetTokenUses } from "../features/trustedWorkloads/tokenUses.ts";
import { removeExpiredTunnels } from "../features/tunnels/tunnels.ts";
import { forgetAccounts } from "../features/users/account/registerUser.ts";
import type { DatabaseSigningKeys } from "../secrets/signingKeys.ts";
import type { Services } from "../services.ts";
import type { AccessClock } from "./accessClock.ts";
import type { DiskSpace } from "./DiskSpace.ts";

/** A chore: a task that a process repeats while it runs. */
interface Chore {
  readonly name: string;
  /** Interval in milliseconds. */
  readonly every: number;
  /**
   * Runs the task once.
   * @param stop aborted when the service stops. A long run then ends soon.
   */
  run(stop: AbortSignal): Promise<void>;
}

/** Objects of the process that the chores keep up to date. */
interface Kept {
  readonly keys: DatabaseSigningKeys;
  readonly clock: AccessClock;
  /** The measurement of the free space for the database. Undefined with PostgreSQL. */
  readonly diskSpace: DiskSpace | undefined;
}

function choresOf(services: Services, { keys, clock, diskSpace }: Kept, log: FastifyBaseLogger): Chore[] {
  const backlog = new RetentionBacklog(services, log);
  return [
    // This interval is the maximum time until this instance signs with a new key after another instance has rotated the
    // signing key.
    { name: "signing keys", every: 5 * SECOND, run: () => keys.refresh() },
    { name: "access clock", every: 5 * SECOND, run: () => clock.measure() },
    { name: "billing", every: 10 * MINUTE, run: () => refreshBilling(services) },
    { name: "removed devices", every: HOUR, run: () => forgetRemovedDevices(services) },
    // These chores combine counter rows. Each database connection writes its own rows, and each query for a count or
    // size adds up all rows.
    { name: "device counts", every: MINUTE, run: () => foldDeviceCounts(services) },
    { name: "recording sizes", every: MINUTE, run: () => foldRecordingSizes(services) },
    { name: "audit trail", every: HOUR, run: () => trimAuditTrail(services) },
    { name: "expired objects", every: HOUR, run: () => removeExpiredObjects(services) },
    { name: "mails", every: 2 * SECOND, run: () => deliverMails(services, log) },
    { name: "accounts", every: HOUR, run: () => forgetAccounts(services) },
    { name: "sessions", every: MINUTE, run: (stop) => trimSessions(services, stop) },
    {
      name: "recording quotas",
      every: MINUTE,
      run: (stop) => enforceQuotas(services, stop, log),
    },
    // This chore runs separately, so that it also reports sessions that the chore above cannot delete.
    { name: "retention backlog", every: MINUTE, run: () => backlog.measure() },
    { name: "disk space", every: MINUTE, run: async () => diskSpace?.measure() },
    { name: "workload tokens", every: HOUR, run: () => forgetTokenUses(services) },
    { name: "deleted tags", every: 10 * SECOND, run: () => removeDeletedTags(services) },
    { name: "unused tags", every: HOUR, run: () => removeUnusedTags(services) },
    { name: "tunnels", every: HOUR, run: () => removeExpiredTunnels(services) },
  ];
}

/**
 * Starts the periodic chores of a process. A chore runs again only after its last run has ended. A failure is logged,
 * and the chore runs again at its next interval.
 * @returns a function that stops the chores, and waits for running chores
 */
export function startChores(services: Services, kept: Kept, log: FastifyBaseLogger): () => Promise<void> {
  const running = new Set<Promise<void>>();
  const stop = new AbortController();
  const timers = choresOf(services, kept, log).map(({ name, every, run }) => {
    let busy = false;
    return setInterval(() => {
      if (busy) return;
      busy = true;
      const work = run(stop.signal)
        .catch((error: unknown) => log.error({ err: error, chore: name }, "a chore failed"))
        .finally(() => {
          busy = false;
          running.delete(work);
        });
      running.add(work);
    }, every).unref();
  });
  return async () => {
    for (const timer of timers) clearInterval(timer);
    stop.abort();
    await Promise.all(running);
  };
}
