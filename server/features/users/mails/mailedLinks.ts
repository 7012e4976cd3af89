import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import { inTransaction } from "../../../db/sql/transaction.ts";
import { NotFoundError, UnauthenticatedError } from "../../../errors.ts";
import type { Handler } from "../../../http/handler.ts";
import { hashPassword } from "../../../secrets/passwords.ts";
import { queueAccountMail } from "../../outbox/outbox.ts";
import { changeAccount } from "../account/changeAccount.ts";
import { actingUser } from "../callingUser.ts";
import { isToken, useToken } from "./mailTokens.ts";

export const resendEmail: Handler<PublicOperations["resendEmail"]> = async ({ services, body }) => {
  await queueAccountMail(services, { purpose: "activation", account: body.username.toLowerCase() });
  return undefined;
};

export const recoverPassword: Handler<PublicOperations["recoverPassword"]> = async ({ services, body }) => {
  await queueAccountMail(services, { purpose: "recovery", account: body.username.toLowerCase() });
  return undefined;
};

export const validateAccount: Handler<PublicOperations["validateAccount"]> = async (context) => {
  const { services, query, request } = context;
  await inTransaction(services, async (tx) => {
    const user = await tx.user.findUnique({ where: { email: query.email.toLowerCase() } });
    const valid =
      user?.status === "not-confirmed" &&
      (await useToken(services, tx, user.id, "activation", query.token)) !== undefined;
    if (!valid) throw new NotFoundError("token: the link is unknown, used or expired; request a new e-mail");
    const change = { caller: actingUser(user), request, operation: "validateAccount" };
    await changeAccount(services, tx, user, { status: "confirmed" }, change);
  });
  return undefined;
};

/**
 * Sets a new password. All tokens of the user become invalid, and logins that are waiting for a second factor end,
 * because an attacker may be logged in to the account. MFA stays on.
 */
export const updateRecoverPassword: Handler<PublicOperations["updateRecoverPassword"]> = async (context) => {
  const { services, params, body, request, signal } = context;
  const invalidToken = () =>
    new UnauthenticatedError("token: the link is wrong, used or expired; request a new e-mail");
  // The token is checked before the password is hashed, so that no hash is computed for a wrong token.
  if (!(await isToken(services, params.uid, "recovery", body.token))) throw invalidToken();
  const passwordHash = await hashPassword(body.password, signal);
  await inTransaction(services, async (tx) => {
    const user = await tx.user.findUnique({ where: { id: params.uid } });
    const used = user && (await useToken(services, tx, user.id, "recovery", body.token));
    if (!user || used === undefined) throw invalidToken();
    const data = { passwordHash, tokenVersion: { increment: 1 } };
    const change = { caller: actingUser(user), request, operation: "updateRecoverPassword" };
    await changeAccount(services, tx, user, data, change);
    // The counters of wrong passwords are deleted, so that the new password works immediately. The counters of wrong
    // codes are kept.
    await tx.loginFailure.deleteMany({ where: { subject: user.id, source: { not: "mfa" } } });
  });
  return undefined;
};
