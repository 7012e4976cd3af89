import type { Operations, Role, trustedWorkloads } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import type { TrustedWorkload } from "../../db/generated/sqlite/client.ts";
import { findRow } from "../../db/sql/rows.ts";
import { credentialRefusal, lastEnd, rulesDigest } from "../../http/access/authenticate.ts";
import { signWorkloadToken } from "../../http/access/tokens.ts";
import type { Handler } from "../../http/handler.ts";
import type { Services } from "../../services.ts";
import { wireDate } from "../fields.ts";

type Session = z.output<typeof trustedWorkloads.workloadSession>;

/**
 * Returns a session of a workload.
 * @param actor name of the workload's job in the audit trail
 * @param startedAt time at which the exchanged token was issued
 */
export async function workloadSession(
  services: Pick<Services, "keys" | "now">,
  row: TrustedWorkload,
  actor: string,
  startedAt: Date,
): Promise<Session> {
  const renewableUntil = lastEnd(row, startedAt);
  const { id, tenantId: tenant, name } = row;
  const subject = { id, tenant, name: actor, rules: rulesDigest(row), startedAt };
  const { token, endsAt } = await signWorkloadToken(services, subject, renewableUntil);
  return {
    token,
    expires_at: wireDate(endsAt),
    renewable_until: wireDate(renewableUntil),
    tenant,
    role: row.role as Role,
    workload: { id, name },
    actor,
  };
}

/**
 * Renews the session of a workload. The renewed session keeps its start time, so renewals cannot extend the maximum
 * duration.
 */
export const renewWorkloadSession: Handler<Operations["renewWorkloadSession"]> = async (context) => {
  const { services, identity } = context;
  const { workloadId: id, name, rules, startedAt } = identity.caller;
  const row = await findRow(services.db, "TrustedWorkload", { tenantId: identity.tenant, id });
  // The rules may have changed between the authentication and this read, for example while the client was sending the
  // body.
  const isCurrent = row !== null && rulesDigest(row) === rules;
  if (!isCurrent || lastEnd(row, startedAt) <= services.now()) throw credentialRefusal();
  return workloadSession(services, row, name, startedAt);
};
