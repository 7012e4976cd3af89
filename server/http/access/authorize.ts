import { acceptedCredentials, type Operation, type Role, roleAtLeast } from "@gatehouse-access/sdk/contract";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { findRow } from "../../db/sql/rows.ts";
import { ForbiddenError, NotFoundError } from "../../errors.ts";
import type { Services, SqlServices } from "../../services.ts";
import { authenticate, type Credential, credentialRefusal, readCredential, roleIn } from "./authenticate.ts";
import type { Caller, DeviceCaller, Member, NamedTenant } from "./identity.ts";

/** Operations that return 404 for a token without a namespace. All other operations return 403 (rules section 1.5). */
const NOT_FOUND_WITHOUT_NAMESPACE: ReadonlySet<string> = new Set([
  "getTags",
  "renameTag",
  "deleteTag",
  "getSessionRecordStatus",
]);

/**
 * Operations that accept an expired device token. Agents of version 0.19 request the signature of a login with the
 * token that they received when they started, even after it has expired. They also do not request a new token when the
 * service refuses a tunnel.
 */
const WITH_EXPIRED_TOKEN: ReadonlySet<string> = new Set([
  "deviceConnection",
  "agentConnection",
  "authSshPublicKey",
]);

const CREDENTIAL_NAMES = {
  jwt: "a user's token",
  apikey: "an API key",
  device: "a device's token",
  workload: "a workload's session",
} as const;

const kindOf = (caller: Caller) => (caller.kind === "user" ? "jwt" : caller.kind);

/**
 * Checks that the caller may use the operation, according to the operation's `auth`, `scope` and `minRole`.
 * @param tenant the `{tenant}` of the path. Undefined if the path has no `{tenant}`, or if no namespace can have this
 *   id.
 * @param uid the `{uid}` of the path, unvalidated
 * @returns the identity for the handler: a member for an operation on a namespace, otherwise the caller
 * @throws ForbiddenError the credential has the wrong kind, or is for a different namespace or device, or the role is
 *   too low
 * @throws NotFoundError the namespace does not exist
 */
export async function authorize(
  services: SqlServices,
  operation: Operation,
  caller: Caller,
  tenant: string | undefined,
  uid: string | undefined,
): Promise<Caller | Member> {
  if (!acceptedCredentials(operation).includes(kindOf(caller))) {
    throw new ForbiddenError(`not allowed with ${CREDENTIAL_NAMES[kindOf(caller)]}`);
  }
  if (caller.kind === "device" && caller.expired && !WITH_EXPIRED_TOKEN.has(operation.id)) {
    throw credentialRefusal();
  }
  if (operation.scope === "user" || operation.scope === "public") return caller;
  if (operation.scope === "device" && caller.kind === "device") return ownDevice(caller, uid);
  // The `{uid}` of this path is a session id, so do not compare it with the device. The handler searches only the
  // device's own sessions.
  if (operation.scope === "session" && caller.kind === "device") return caller;
  const member =
    operation.scope === "member"
      ? await memberOfPath(services, caller, tenant)
      : await memberOfCredential(services, operation, caller, tenant);
  if (operation.minRole === null || !roleAtLeast(member.role, operation.minRole)) {
    throw new ForbiddenError(`needs the role ${operation.minRole} or above`);
  }
  return member;
}

function ownDevice(caller: DeviceCaller, uid: string | undefined): DeviceCaller {
  if (uid !== undefined && uid !== caller.uid) throw new ForbiddenError("the token is for another device");
  return caller;
}

async function memberOfCredential(
  services: SqlServices,
  operation: Operation,
  caller: Caller,
  tenant: string | undefined,
): Promise<Member> {
  if (operation.scope === "path" && tenant !== caller.tenant) {
    throw await otherNamespace(services, tenant, "the credential is for another namespace");
  }
  const role = roleOf(caller);
  if (role === null) {
    const text = "the token is not for a namespace";
    throw NOT_FOUND_WITHOUT_NAMESPACE.has(operation.id) ? new NotFoundError(text) : new ForbiddenError(text);
  }
  return { caller, tenant: caller.tenant, role };
}

async function memberOfPath(
  services: SqlServices,
  caller: Caller,
  tenant: string | undefined,
): Promise<Member> {
  if (tenant === undefined) throw unknownNamespace();
  const role =
    caller.tenant === tenant
      ? roleOf(caller)
      : caller.kind === "user"
        ? await roleIn(services, tenant, caller.userId)
        : null;
  if (role === null) throw await otherNamespace(services, tenant, "not a member of the namespace");
  return { caller, tenant, role };
}

const roleOf = (caller: Caller): Role | null => (caller.kind === "device" ? null : caller.role);

/**
 * Returns the error for a request to a namespace to which the credential does not belong. The error is 404 if the
 * namespace does not exist, otherwise 403 (rules section 5.5).
 */
async function otherNamespace(
  services: SqlServices,
  tenantId: string | undefined,
  text: string,
): Promise<Error> {
  if (tenantId === undefined) return unknownNamespace();
  const known = await findRow(services.db, "Namespace", { tenantId });
  return known ? new ForbiddenError(text) : unknownNamespace();
}

const unknownNamespace = () => new NotFoundError("no such namespace");

declare module "fastify" {
  interface FastifyRequest {
    /**
     * The authorized sender of the request. Null for a public operation. On the listener for trusted services, this is
     * the namespace that the request specifies, or the sender of the forwarded credential.
     */
    identity: Caller | Member | NamedTenant | null;
    /** The verified credential of the sender. Null if the operation needs no credential. */
    credential: Credential | null;
  }
}

/**
 * Authenticates the sender of a request by the request's credential, and authorizes the sender for the operation.
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
 * Authenticates and authorizes every request before its body is read. Reads only the credential and the path. Other
 * values of the request are validated later, so that a client without access receives no validation errors (rules
 * section 8).
 */
export function authorizeRequests(app: FastifyInstance, services: Services): void {
  app.decorateRequest("identity", null);
  app.decorateRequest("credential", null);
  app.addHook("onRequest", async (request) => {
    const { operation } = request.routeOptions.config;
    // A public operation ignores credentials (clients section 2). If no route serves the path, there is no operation,
    // and the response is 404.
    if (operation === undefined || operation.scope === "public") return;
    request.credential = await readCredential(services, request.headers);
    request.identity = await identify(services, operation, request);
  });
}
