import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import { recordChange } from "../../../changes/recordChange.ts";
import { inTransaction, within } from "../../../db/sql/transaction.ts";
import { ForbiddenError } from "../../../errors.ts";
import type { Handler } from "../../../http/handler.ts";
import { declaredMember } from "../../namespaces/objects.ts";

/**
 * Deletes the calling user. The database also deletes all objects of the user. API keys that the user created are kept,
 * because they belong to the namespace (rules section 15.8).
 */
export const deleteUser: Handler<PublicOperations["deleteUser"]> = async ({
  services,
  identity,
  request,
}) => {
  const { userId } = identity;
  await inTransaction(services, async (tx) => {
    if ((await tx.namespace.count({ where: { ownerId: userId } })) > 0) {
      throw new ForbiddenError("the user owns a namespace: delete it first");
    }
    const change = {
      caller: identity,
      request,
      operation: "deleteUser",
      after: null,
    };
    const inside = within(services, tx);
    for (const membership of await tx.member.findMany({ where: { userId } })) {
      const object = { kind: "member", id: userId };
      const { tenantId } = membership;
      await recordChange(inside, { ...change, tenantId, object, before: declaredMember(membership) });
    }
    const { username } = await tx.user.delete({ where: { id: userId } });
    await tx.loginFailure.deleteMany({ where: { subject: userId } });
    const object = { kind: "user", id: userId };
    await recordChange(inside, { ...change, tenantId: null, object, before: { username } });
  });
  return undefined;
};
