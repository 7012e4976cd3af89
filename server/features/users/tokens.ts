import type { InternalOperations, PublicOperations } from "@gatehouse-access/sdk/contract";
import { ForbiddenError, NotFoundError } from "../../errors.ts";
import { roleIn } from "../../http/authenticate.ts";
import type { Handler } from "../../http/handler.ts";
import { callingUser } from "./callingUser.ts";
import { homeOf, sessionOf } from "./session.ts";

/** A fresh session for the preferred namespace, as a login makes (rules section 5.14). */
export const getUserInfo: Handler<PublicOperations["getUserInfo"]> = async ({ services, identity }) => {
  const user = await callingUser(services, identity);
  return sessionOf(services, user, await homeOf(services, user), identity.token);
};

/** Switches to another namespace of the user, which becomes the preferred one (rules section 5.14). */
export const getNamespaceToken: Handler<PublicOperations["getNamespaceToken"]> = async (context) => {
  const { services, params, identity } = context;
  const { tenant } = params;
  const role = await roleIn(services, tenant, identity.userId);
  if (role === null) throw new NotFoundError("no such namespace of the user");
  const user = await callingUser(services, identity);
  if (user.preferredTenantId !== tenant) {
    await services.db.user.update({ where: { id: user.id }, data: { preferredTenantId: tenant } });
  }
  return sessionOf(services, user, { tenant, role }, identity.token);
};

/** A session for a user whom a trusted service names. */
export const createUserToken: Handler<InternalOperations["createUserToken"]> = async ({
  services,
  params,
}) => {
  const user = await services.db.user.findUnique({ where: { id: params.id } });
  if (!user) throw new NotFoundError("no such user");
  if (user.status !== "confirmed") throw new ForbiddenError("the user is not confirmed");
  return sessionOf(services, user, await homeOf(services, user), null);
};
