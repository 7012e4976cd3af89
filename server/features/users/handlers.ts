import type { accounts, mfa, PublicOperations, users } from "@gatehouse-access/sdk/contract";
import type { Handler, Handlers } from "../../http/handler.ts";
import { deleteUser } from "./account/deleteUser.ts";
import { registerUser } from "./account/registerUser.ts";
import { setup } from "./account/setup.ts";
import { updateUser, updateUserData, updateUserPassword } from "./account/updateUser.ts";
import { countLogin } from "./countLogin.ts";
import { login } from "./login.ts";
import { recoverPassword, resendEmail, updateRecoverPassword, validateAccount } from "./mails/mailedLinks.ts";
import { authMfa, enableMfa, generateMfa } from "./mfa/mfa.ts";
import { disableMfa, recoverMfa } from "./mfa/mfaRecovery.ts";
import { requestResetMfa, resetMfa } from "./mfa/mfaReset.ts";
import { getNamespaceToken, getUserInfo } from "./session.ts";

/** Version of the API, in the format that clients compare. */
const VERSION = "v0.19.0";
const SSH_PORT = 22;

const getInfo: Handler<PublicOperations["getInfo"]> = async ({ services, request }) => {
  const { db, settings } = services;
  const address = request.origin;
  const port = address.port || (address.protocol === "https:" ? "443" : "80");
  const users = await db.user.findFirst({ select: { id: true } });
  return {
    version: VERSION,
    endpoints: {
      ssh: settings.sshEndpoint ?? `${address.hostname}:${settings.sshPort || SSH_PORT}`,
      api: settings.apiEndpoint ?? `${address.hostname}:${port}`,
    },
    setup: users !== null,
    authentication: { local: true, saml: settings.saml !== undefined },
  };
};

const healthcheck: Handler<PublicOperations["healthcheck"]> = async () => undefined;

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
