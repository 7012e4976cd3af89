import type { InternalOperations } from "@gatehouse-access/sdk/contract";
import { loginDecision } from "@gatehouse-access/sdk/policy";
import { NotFoundError } from "../../errors.ts";
import type { Handler } from "../../http/handler.ts";
import { credentialOf, findOwnedKey, lapseOf, presentPublicKey } from "./publicKeys.ts";

/**
 * Returns a key for a trusted service. A key that admits no login is treated as missing, because trusted services of
 * version 0.19 do not support expiry times and owners.
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
  const { tenant_id: tenantId, name: deviceName, tags } = body;
  const row = await findOwnedKey(services.db, { tenantId, fingerprint: params.fingerprint });
  const at = services.accessTime();
  // A request with an unknown namespace must neither add a cache of patterns nor wait for a decision.
  if (row === null || lapseOf(row, at) !== undefined) return false;
  // The firewall is evaluated by another operation, so the decision contains no rules and needs no address.
  const attempt = { deviceName, deviceTags: tags ?? [], login: params.username, sourceIp: "", at };
  const decision = loginDecision(credentialOf(row), [], attempt, services.patterns.of(tenantId));
  return (await services.decisions.run(tenantId, decision)).deniedBy === undefined;
};
