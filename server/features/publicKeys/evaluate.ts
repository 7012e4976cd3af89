import type { InternalOperations } from "@gatehouse-access/sdk/contract";
import { loginDecision } from "@gatehouse-access/sdk/policy";
import { NotFoundError } from "../../errors.ts";
import type { Handler } from "../../http/handler.ts";
import { credentialOf, findOwnedKey, lapseOf, presentPublicKey } from "./publicKeys.ts";

/**
 * Returns a public key to a trusted service. Trusted services of version 0.19 do not support expiry times and owners.
 * Therefore, a key that currently allows no login is treated as not found.
 */
export const lookupPublicKey: Handler<InternalOperations["lookupPublicKey"]> = async (context) => {
  const { services, params } = context;
  const { tenant: tenantId, fingerprint } = params;
  const row = await findOwnedKey(services.db, { tenantId, fingerprint });
  if (!row || lapseOf(row, services.accessTime())) throw new NotFoundError("no such key");
  return presentPublicKey(row);
};

/**
 * Returns true if a public key allows a login to the device in the request (rules section 13).
 * @throws BusyError too many evaluations are already waiting in the namespace
 */
export const evaluatePublicKey: Handler<InternalOperations["evaluatePublicKey"]> = async (context) => {
  const { services, params, body } = context;
  const { tenant_id: tenantId, name: deviceName, tags } = body;
  const row = await findOwnedKey(services.db, { tenantId, fingerprint: params.fingerprint });
  const at = services.accessTime();
  // A request for an unknown namespace must not create a cache of patterns, and must not wait for an evaluation.
  if (row === null || lapseOf(row, at) !== undefined) return false;
  // A separate operation evaluates the firewall, so this evaluation contains no rules and needs no source address.
  const attempt = { deviceName, deviceTags: tags ?? [], login: params.username, sourceIp: "", at };
  const decision = loginDecision(credentialOf(row), [], attempt, services.patterns.of(tenantId));
  return (await services.decisions.run(tenantId, decision)).deniedBy === undefined;
};
