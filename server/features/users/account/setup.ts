import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import { recordChange } from "../../../changes/recordChange.ts";
import { inTransaction, within } from "../../../db/sql/transaction.ts";
import { ConflictError, ForbiddenError } from "../../../errors.ts";
import type { Handler } from "../../../http/handler.ts";
import { isSameSecret } from "../../../secrets/digest.ts";
import { hashPassword } from "../../../secrets/passwords.ts";
import { setupSign } from "../../../secrets/setupSign.ts";
import { insertNamespace, WELCOME } from "../../namespaces/insertNamespace.ts";
import { declaredNamespace } from "../../namespaces/objects.ts";
import { insertUser } from "./createUser.ts";

/**
 * Returns the name of the first user's namespace. The name is derived from the username. Characters that are invalid in
 * a host-name label (rules section 5.2) become hyphens. The rules do not define the name for a username that contains
 * such characters, for example `ana.reis`.
 */
function labelOf(username: string): string {
  const label = username
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-+|-+$/g, "");
  return label || "personal";
}

/**
 * Creates the first user, and a namespace that the user owns (rules section 11). The request must contain the signature
 * of the setup link.
 */
export const setup: Handler<PublicOperations["setup"]> = async (context) => {
  const { services, query, body, signal, request } = context;
  const setupDone = () => new ForbiddenError("setup is already done");
  if ((await services.db.user.count()) > 0) throw setupDone();
  if (!isSameSecret(query.sign, setupSign(services.keys)))
    throw new ForbiddenError(
      "sign: the signature does not match the setup link; open the link from the service's log",
    );
  const passwordHash = await hashPassword(body.password, signal);
  await inTransaction(services, async (tx) => {
    if ((await tx.user.count()) > 0) throw setupDone();
    const user = await insertUser(services, tx, body, passwordHash);
    const namespace = await insertNamespace(within(services, tx), {
      name: labelOf(body.username),
      ownerId: user.id,
      type: "personal",
      sessionRecord: false,
      connectionAnnouncement: WELCOME,
    });
    if (namespace === null) throw new ConflictError("already exists");
    const { tenantId } = namespace;
    await recordChange(within(services, tx), {
      tenantId,
      caller: {
        kind: "user",
        userId: user.id,
        username: body.username,
        tokenVersion: 0,
        token: null,
        tenant: tenantId,
        role: "owner",
      },
      request,
      operation: "setup",
      object: { kind: "namespace", id: tenantId },
      before: null,
      after: declaredNamespace(namespace),
    });
  });
  return undefined;
};
