import type { Operation } from "@gatehouse-access/sdk/contract";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Services, SqlServices } from "../../services.ts";
import { authenticate, type Credential, credentialRefusal, readCredential } from "./authenticate.ts";
import { authorize } from "./authorize.ts";
import type { Caller, Member, NamedTenant } from "./identity.ts";

declare module "fastify" {
  interface FastifyRequest {
    /**
     * The authorised sender of the request; null for a public operation. On the private listener, the namespace that
     * the request is about.
     */
    identity: Caller | Member | NamedTenant | null;
    /** What the sender proved to be; null where nobody has to prove anything. */
    credential: Credential | null;
  }
}

/**
 * Authenticates the sender of a request by its credential, and authorises it for the operation.
 * @throws UnauthenticatedError, ForbiddenError, NotFoundError see `authenticate` and `authorize`
 */
export async function identify(
  services: SqlServices,
  operation: Operation,
  request: FastifyRequest,
): Promise<Caller | Member> {
  if (request.credential === null) throw credentialRefusal();
  const caller = await authenticate(services, request.credential);
  const params = request.params as { readonly tenant?: string; readonly uid?: string };
  let tenant: string | undefined;
  const schema = operation.params.shape.tenant;
  if (schema !== undefined && (operation.scope === "path" || operation.scope === "member")) {
    const named = schema.safeParse(params.tenant);
    if (named.success) tenant = String(named.data);
  }
  return authorize(services, operation, caller, tenant, params.uid);
}

/**
 * Authenticates and authorises every request before its body is read. Values are validated after that, so that a
 * stranger learns nothing about them (rules section 8); only the path's tenant is needed here already.
 */
export function authorizeRequests(app: FastifyInstance, services: Services): void {
  app.decorateRequest("identity", null);
  app.decorateRequest("credential", null);
  app.addHook("onRequest", async (request) => {
    const { operation } = request.routeOptions.config;
    // A public operation ignores credentials (clients section 2). A path that is not served has no operation either,
    // and answers 404.
    if (operation === undefined || operation.scope === "public") return;
    request.credential = await readCredential(services, request.headers);
    request.identity = await identify(services, operation, request);
  });
}
