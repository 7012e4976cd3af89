import type { operations, Role } from "@gatehouse-access/sdk/contract";
import type { Answer, CallOptions } from "../../http/testApp.ts";
import { type Credential, type Model, type Place, rank, type User } from "./model.ts";

/** An entry of the audit trail, without what a clock or a network decides. */
export interface Entry {
  readonly tenantId: string | null;
  readonly operation: string;
  readonly actorKind: "user";
  readonly actorId: string;
  readonly objectKind: string;
  readonly objectId: string;
}

/** A step as a request, with what the rules make of it. */
export interface Plan {
  readonly id: keyof typeof operations;
  readonly options: CallOptions;
  /** Who sends it; undefined for a login. */
  readonly actor?: Credential;
  /** Statuses with which it may be refused; none: it succeeds. */
  readonly refusals: readonly number[];
  /** What the audit trail gains when it succeeds; null when nothing changes. */
  readonly entry: Entry | null;
  /** What the model makes of the answer. */
  apply(answer: Answer): void;
}

export const credentialsOf = ({ kind, secret }: Credential): CallOptions =>
  kind === "token" ? { token: secret } : { apiKey: secret };

/** A user as the sender of a request, whom the rules let through to the operation. */
export interface Sender {
  readonly user: User;
  readonly tenant: string;
  /** In the namespace that the operation is about; null where it is about none. */
  readonly role: Role | null;
}

/**
 * The sender of an operation that takes users' tokens only, or the status that keeps it out (rules section 1).
 * @param minimum the role that the operation needs in the token's namespace, which must be the path's if there is one
 */
export function senderOf(
  model: Model,
  credential: Credential,
  minimum?: Role,
  path?: Place,
): Sender | 401 | 403 {
  const standing = model.standing(credential);
  if (standing === null) return 401;
  if (credential.kind === "key") return 403;
  const { user, tenant } = credential;
  const { role } = standing;
  if (minimum === undefined) return { user, tenant, role };
  if (path !== undefined && path.tenant !== tenant) return 403;
  return role === null || rank(role) < rank(minimum) ? 403 : { user, tenant, role };
}

/** Rules section 4: one gives and takes roles up to one's own, and nobody an owner's. */
export const mayGive = (own: Role | null, role: Role): boolean =>
  own !== null && role !== "owner" && rank(role) <= rank(own);

/** Statuses whose condition holds. */
export const refusedBy = (...conditions: readonly (readonly [boolean, number])[]): number[] =>
  conditions.flatMap(([holds, status]) => (holds ? [status] : []));
