import type { InternalOperations } from "@gatehouse-access/sdk/contract";
import { keyAdmits } from "@gatehouse-access/sdk/policy";
import { inTransaction } from "../../db/transaction.ts";
import { NotFoundError } from "../../errors.ts";
import type { Handler } from "../../http/handler.ts";
import type { Services } from "../../services.ts";
import { presentFilter } from "../filters/filter.ts";
import { withTags } from "../tags/tagList.ts";
import { presentPublicKey } from "./publicKey.ts";

/** A key with its tags, read at one moment: between its old and its new filter it would admit to every device. */
function findKey(services: Services, tenantId: string, fingerprint: string) {
  return inTransaction(services, (tx) =>
    tx.publicKey.findUnique({
      where: { tenantId_fingerprint: { tenantId, fingerprint } },
      include: withTags,
    }),
  );
}

export const lookupPublicKey: Handler<InternalOperations["lookupPublicKey"]> = async (context) => {
  const { services, params } = context;
  const row = await findKey(services, params.tenant, params.fingerprint);
  if (!row) throw new NotFoundError("no such key");
  return presentPublicKey(row);
};

/** Decides by rules section 13, about the device as the caller describes it. */
export const evaluatePublicKey: Handler<InternalOperations["evaluatePublicKey"]> = async (context) => {
  const { services, params, body } = context;
  const row = await findKey(services, body.tenant_id, params.fingerprint);
  if (!row) return false;
  const key = { username: row.username, filter: presentFilter(row) };
  return keyAdmits(key, { name: body.name, tags: body.tags ?? [] }, params.username);
};
