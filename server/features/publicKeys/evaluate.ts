import type { InternalOperations } from "@gatehouse-access/sdk/contract";
import { keyAdmits } from "@gatehouse-access/sdk/policy";
import { NotFoundError } from "../../errors.ts";
import type { Handler } from "../../http/handler.ts";
import { presentFilter } from "../filters/filter.ts";
import { presentPublicKey, publicKeyRows } from "./publicKey.ts";

export const lookupPublicKey: Handler<InternalOperations["lookupPublicKey"]> = async (context) => {
  const { services, params } = context;
  const row = await publicKeyRows.find(services.db, {
    tenantId: params.tenant,
    fingerprint: params.fingerprint,
  });
  if (!row) throw new NotFoundError("no such key");
  return presentPublicKey(row);
};

/** Returns whether a public key allows a login (rules section 13). The request describes the device. */
export const evaluatePublicKey: Handler<InternalOperations["evaluatePublicKey"]> = async (context) => {
  const { services, params, body } = context;
  const key = { tenantId: body.tenant_id, fingerprint: params.fingerprint };
  const row = await publicKeyRows.find(services.db, key);
  if (!row) return false;
  const rule = { username: row.username, filter: presentFilter(row) };
  return keyAdmits(rule, { name: body.name, tags: body.tags ?? [] }, params.username);
};
