import { type Operation, type Role, roleAtLeast } from "@gatehouse-access/sdk/contract";
import { findRow } from "../../db/sql/rows.ts";
import { ForbiddenError, NotFoundError } from "../../errors.ts";
import type { SqlServices } from "../../services.ts";
import { credentialRefusal, roleIn } from "./authenticate.ts";
import type { Caller, DeviceCaller, Member } from "./identity.ts";

/** Operations that answer 404 to a token without a namespace; others answer 403 (rules section 1.5). */
const NOT_FOUND_WITHOUT_NAMESPACE: ReadonlySet<string> = new Set([
  "getTags",
  "renameTag",
  "deleteTag",
  "getSessionRecordStatus",
]);

/**
 * Operations that take a device's token whose time is over. Agents of 0.19 keep the token of their start for signatures,
 * and never ask for another one when a tunnel is refused.
 */
const WITH_EXPIRED_TOKEN: ReadonlySet<string> = new Set(["deviceConnection", "authSshPublicKey"]);

const CREDENTIAL_NAMES = { jwt: "a user's token", apikey: "an API key", device: "a device's token" } as const;

const kindOf = (caller: Caller) => (caller.kind === "user" ? "jwt" : caller.kind);

/**
 * Checks that the caller may use the operation, by its `auth`, `scope` and `minRole`.
 * @param tenant the `{tenant}` of the path; undefined without one, and for an id that no namespace can have
 * @param uid the `{uid}` of the path, unvalidated
 * @returns the handler's identity: the caller, or for an operation of a namespace the member
 * @throws ForbiddenError wrong kind of credential, other namespace, other device, role too low
 * @throws NotFoundError no such namespace
 */
export async function authorize(
  services: SqlServices,
  operation: Operation,
  caller: Caller,
  tenant: string | undefined,
  uid: string | undefined,
): Promise<Caller | Member> {
  if (!operation.auth.includes(kindOf(caller))) {
    throw new ForbiddenError(`not allowed with ${CREDENTIAL_NAMES[kindOf(caller)]}`);
  }
  if (caller.kind === "device" && caller.expired && !WITH_EXPIRED_TOKEN.has(operation.id)) {
    throw credentialRefusal();
  }
  if (operation.scope === "user" || operation.scope === "public") return caller;
  if (operation.scope === "device" && caller.kind === "device") return ownDevice(caller, uid);
  // The path names a session; the handler searches only the device's own sessions.
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
  if (uid !== undefined && uid !== caller.uid) throw new ForbiddenError("the token is another device's");
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

/** 404 for a namespace that does not exist, else 403 (rules section 5.5). */
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
