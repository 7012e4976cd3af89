import type {
  InternalOperations,
  PublicOperations,
  publicOperations,
  Role,
} from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import type { Member, User } from "../../db/generated/sqlite/client.ts";
import { readRows, sql } from "../../db/sql/sql.ts";
import { ForbiddenError, NotFoundError } from "../../errors.ts";
import { roleIn } from "../../http/access/authenticate.ts";
import type { UserToken } from "../../http/access/identity.ts";
import { membershipLasts } from "../../http/access/membership.ts";
import { signUserToken } from "../../http/access/tokens.ts";
import type { Handler } from "../../http/handler.ts";
import type { SqlServices } from "../../services.ts";
import { callingUser } from "./callingUser.ts";

type Session = z.output<typeof publicOperations.login.success.body>;

/** A namespace of a user, and the user's role in the namespace. */
interface NamespaceRole {
  readonly tenant: string;
  readonly role: Role;
}

/**
 * Returns the namespace of a new token. This is the preferred namespace if the user is still a member of it, otherwise
 * the first namespace that the user joined. Namespaces in which the membership has ended are ignored. Returns null if
 * no namespace is left, or if the user has not accepted the invitation to the namespace yet (rules section 5.14).
 */
export async function homeOf(
  { db, accessTime }: Pick<SqlServices, "db" | "accessTime">,
  user: User,
): Promise<NamespaceRole | null> {
  const [member] = await readRows<Member>(
    db,
    sql`SELECT * FROM "Member" WHERE "userId" = ${user.id} AND ${membershipLasts(accessTime())}
      ORDER BY "tenantId" = ${user.preferredTenantId ?? ""} DESC, "addedAt" ASC, "tenantId" ASC LIMIT 1`,
  );
  return member?.status === "accepted" ? { tenant: member.tenantId, role: member.role as Role } : null;
}

/**
 * Returns a token, and the data of the user that clients show (models section 1).
 * @param given the token of the request. Null if a secret such as a password authenticated the request instead. If the
 *   user has set a new password with this token, the token stays valid only for a limited time. The new token then has
 *   the same id and the same expiry time.
 */
export async function sessionOf(
  services: Pick<SqlServices, "keys" | "now">,
  user: User,
  home: NamespaceRole | null,
  given: UserToken | null,
): Promise<Session> {
  const tenant = home?.tenant ?? "";
  const mfa = user.mfaSecret !== null;
  const { id, origin, username, tokenVersion } = user;
  return {
    token: await signUserToken(
      services,
      { id, origin, username, mfa, tenant, tokenVersion },
      given?.isKept ? given : undefined,
    ),
    id,
    origin,
    auth_methods: [origin.toLowerCase()],
    user: username,
    name: user.name,
    email: user.email,
    recovery_email: user.recoveryEmail,
    tenant,
    role: home?.role ?? "",
    mfa,
    max_namespaces: user.maxNamespaces,
  };
}

/**
 * Returns a session for the user's preferred namespace. The response has the same format as the response to a login
 * (rules section 5.14).
 */
export const getUserInfo: Handler<PublicOperations["getUserInfo"]> = async ({ services, identity }) => {
  const user = await callingUser(services, identity);
  return sessionOf(services, user, await homeOf(services, user), identity.token);
};

/**
 * Returns a session for a different namespace of the user, and makes it the preferred namespace (rules section 5.14).
 */
export const getNamespaceToken: Handler<PublicOperations["getNamespaceToken"]> = async (context) => {
  const { services, params, identity } = context;
  const { tenant } = params;
  const role = await roleIn(services, tenant, identity.userId);
  if (role === null)
    throw new NotFoundError("the namespace does not exist, or the user is not a member of the namespace");
  const user = await callingUser(services, identity);
  if (user.preferredTenantId !== tenant) {
    await services.db.user.update({ where: { id: user.id }, data: { preferredTenantId: tenant } });
  }
  return sessionOf(services, user, { tenant, role }, identity.token);
};

/** Creates a session for a user on behalf of a trusted service. */
export const createUserToken: Handler<InternalOperations["createUserToken"]> = async ({
  services,
  params,
}) => {
  const user = await services.db.user.findUnique({ where: { id: params.id } });
  if (!user) throw new NotFoundError("no such user");
  if (user.status !== "confirmed") throw new ForbiddenError("the user is not confirmed");
  return sessionOf(services, user, await homeOf(services, user), null);
};
