import type { InternalOperations } from "@gatehouse-access/sdk/contract";
import { type DeviceFacts, keyAdmits } from "@gatehouse-access/sdk/policy";
import type { Decision } from "../../DecisionTurns.ts";
import { NotFoundError } from "../../errors.ts";
import type { Handler } from "../../http/handler.ts";
import type { Services } from "../../services.ts";
import { presentFilter } from "../filters/filter.ts";
import { type FoundKey, findOwnedKey, lapseOf, presentPublicKey } from "./publicKey.ts";

/** Decides whether a key admits a login name on a device, one pattern in each step. */
export function* decideKey(
  { patterns }: Pick<Services, "patterns">,
  key: Pick<FoundKey, "tenantId" | "username" | "hostname" | "tags">,
  device: DeviceFacts,
  login: string,
): Decision<boolean> {
  const source = patterns.of(key.tenantId);
  if (!keyAdmits({ username: key.username, filter: {} }, device, login, source)) return false;
  yield;
  return keyAdmits({ username: "", filter: presentFilter(key) }, device, login, source);
}

/**
 * Returns a key for a trusted service. A key that admits no login counts as missing, because trusted services of version
 * 0.19 do not know ends and owners.
 */
export const lookupPublicKey: Handler<InternalOperations["lookupPublicKey"]> = async (context) => {
  const { services, params } = context;
  const { tenant: tenantId, fingerprint } = params;
  const row = await findOwnedKey(services.db, { tenantId, fingerprint });
  if (!row || lapseOf(row, services.accessTime())) throw new NotFoundError("no such key");
  return presentPublicKey(row);
};

/**
 * Returns whether a public key allows a login (rules section 13). The request describes the device.
 * @throws BusyError too many decisions of the namespace wait
 */
export const evaluatePublicKey: Handler<InternalOperations["evaluatePublicKey"]> = async (context) => {
  const { services, params, body } = context;
  const key = { tenantId: body.tenant_id, fingerprint: params.fingerprint };
  const row = await findOwnedKey(services.db, key);
  if (!row || lapseOf(row, services.accessTime())) return false;
  const device = { name: body.name, tags: body.tags ?? [] };
  return services.decisions.run(body.tenant_id, decideKey(services, row, device, params.username));
};
