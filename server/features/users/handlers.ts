import type { mfa, PublicOperations, users } from "@gatehouse-access/sdk/contract";
import type { Handlers } from "../../http/handler.ts";
import { countLogin } from "./countLogin.ts";
import { getInfo, healthcheck } from "./info.ts";
import { login } from "./login.ts";
import { authMfa, enableMfa, generateMfa } from "./mfa.ts";
import { disableMfa, recoverMfa } from "./mfaRecovery.ts";
import { requestResetMfa, resetMfa } from "./mfaReset.ts";
import { setup } from "./setup.ts";
import { getNamespaceToken, getUserInfo } from "./tokens.ts";
import { updateUser } from "./updateUser.ts";

export const userHandlers: Handlers<Pick<PublicOperations, keyof typeof users & keyof PublicOperations>> = {
  login: (context) => countLogin(context.services, "password", () => login(context)),
  authUser: (context) => countLogin(context.services, "password", () => login(context)),
  getUserInfo,
  authMfa: (context) => countLogin(context.services, "mfa", () => authMfa(context)),
  generateMfa,
  enableMfa,
  getToken: (context) => getNamespaceToken(context),
  getNamespaceToken,
  updateUser,
  setup,
  getInfo,
  healthcheck,
};

export const mfaHandlers: Handlers<Pick<PublicOperations, keyof typeof mfa & keyof PublicOperations>> = {
  disableMfa,
  recoverMfa: (context) => countLogin(context.services, "mfa", () => recoverMfa(context)),
  requestResetMfa,
  resetMfa: (context) => countLogin(context.services, "mfa", () => resetMfa(context)),
};
