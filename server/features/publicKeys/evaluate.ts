import type { InternalOperations } from "@gatehouse-access/sdk/contract";
import { keyAdmits } from "@gatehouse-access/sdk/policy";
import { NotFoundError } from "../../errors.ts";
import type { Handler } from "../../http/handler.ts";
import { presentFilter } from "../filters/filter.ts";
import { findOwnedKey, lapseOf, presentPublicKey } from "./publicKey.ts";

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

/** Returns whether a public key allows a login (rules section 13). The request describes the device. */
export const evaluatePublicKey: Handler<InternalOperations["evaluatePublicKey"]> = async (context) => {
  const { services, params, body } = context;
  const key = { tenantId: body.tenant_id, fingerprint: params.fingerprint };
  const row = await findOwnedKey(services.db, key);
  if (!row || lapseOf(row, services.accessTime())) return false;
  const rule = { username: row.username, filter: presentFilter(row) };
  return keyAdmits(rule, { name: body.name, tags: body.tags ?? [] }, params.username);
};
