import type { accounts, PublicOperations } from "@gatehouse-access/sdk/contract";
import type { Handlers } from "../../http/handler.ts";
import { deleteUser } from "./deleteUser.ts";
import { updateUserData, updateUserPassword } from "./deprecatedForms.ts";
import { recoverPassword, resendEmail, updateRecoverPassword, validateAccount } from "./mailedTokens.ts";
import { registerUser } from "./registerUser.ts";

type Ids = keyof typeof accounts & keyof PublicOperations;

export const accountHandlers: Handlers<Pick<PublicOperations, Ids>> = {
  registerUser,
  validateAccount,
  resendEmail,
  recoverPassword,
  updateRecoverPassword,
  updateUserData,
  updateUserPassword,
  deleteUser,
};
