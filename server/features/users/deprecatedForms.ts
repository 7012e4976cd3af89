import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import { inTransaction } from "../../db/transaction.ts";
import { ForbiddenError, InvalidError } from "../../errors.ts";
import type { Handler } from "../../http/handler.ts";
import type { UserCaller } from "../../http/identity.ts";
import { hashPassword } from "../../secrets/passwords.ts";
import { callingUser } from "./callingUser.ts";
import { changeAccount } from "./changeAccount.ts";
import { isCurrentPassword } from "./proveOwner.ts";
import { changeUser, newPassword } from "./updateUser.ts";

/** @throws ForbiddenError the path names somebody else (rules D40) */
function checkOwnId({ userId }: UserCaller, id: string): void {
  if (userId !== id) throw new ForbiddenError("id: must be the caller's own");
}

export const updateUserData: Handler<PublicOperations["updateUserData"]> = async (context) => {
  checkOwnId(context.identity, context.params.id);
  return changeUser(context, "updateUserData");
};

export const updateUserPassword: Handler<PublicOperations["updateUserPassword"]> = async (context) => {
  const { services, identity, params, body, request, signal } = context;
  const { current_password: current, new_password: password } = body;
  checkOwnId(identity, params.id);
  if (current === password) throw new InvalidError("new_password: must differ from current_password");
  const user = await callingUser(services, identity);
  if (!(await isCurrentPassword(services, user, current, signal))) {
    throw new InvalidError("current_password: is wrong");
  }
  const passwordHash = await hashPassword(password, signal);
  const data = newPassword(services, identity, passwordHash);
  await inTransaction(services, (tx) =>
    changeAccount(services, tx, user, data, { caller: identity, request, operation: "updateUserPassword" }),
  );
  return undefined;
};
