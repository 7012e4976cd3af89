import type { operations, Role } from "@gatehouse-access/sdk/contract";
import { expect } from "vitest";
import type { Answer, CallOptions } from "../../http/testApp.ts";
import { type Credential, type Model, type Place, rank, type User } from "./model.ts";

/** An audit entry, without values that depend on a clock or a network. */
interface Entry {
  readonly tenantId: string | null;
  readonly operation: string;
  readonly actorKind: "user";
  readonly actorId: string;
  readonly objectKind: string;
  readonly objectId: string;
}

/** A step as a request, and the expected result of the request. */
export interface Plan {
  readonly id: keyof typeof operations;
  readonly options: CallOptions;
  /** The credential that sends the request; undefined for a login. */
  readonly actor?: Credential;
  /** Possible statuses if the request is refused; empty if the request succeeds. */
  readonly refusals: readonly number[];
  /** The audit entry that the request creates on success; null if nothing changes. */
  readonly entry: Entry | null;
  /** Applies the response to the model. */
  apply(answer: Answer): void;
}

export const credentialsOf = ({ kind, secret }: Credential): CallOptions =>
  kind === "token" ? { token: secret } : { apiKey: secret };

/** The sender of a request, if the rules allow the operation. */
interface Sender {
  readonly user: User;
  readonly tenant: string;
  /** The role in the namespace of the operation; null if the operation has no namespace. */
  readonly role: Role | null;
}

/**
 * Returns the sender of an operation that accepts only users' tokens, or the status of the refusal (rules section 1).
 * @param minimum the minimum role in the token's namespace
 * @param path the namespace in the path, if any; the token must be for this namespace
 */
function senderOf(model: Model, credential: Credential, minimum?: Role, path?: Place): Sender | 401 | 403 {
  const standing = model.standing(credential);
  if (standing === null) return 401;
  if (credential.kind === "key") return 403;
  const { user, tenant } = credential;
  const { role } = standing;
  if (minimum === undefined) return { user, tenant, role };
  if (path !== undefined && path.tenant !== tenant) return 403;
  return role === null || rank(role) < rank(minimum) ? 403 : { user, tenant, role };
}

/** Rules section 4: members can grant and remove roles up to their own role, but never the owner's role. */
const mayGive = (own: Role | null, role: Role): boolean =>
  own !== null && role !== "owner" && rank(role) <= rank(own);

/** Takes pairs of a condition and a response status. Returns the statuses whose condition is true. */
const deniedBy = (...conditions: readonly (readonly [boolean, number])[]): number[] =>
  conditions.flatMap(([holds, status]) => (holds ? [status] : []));

/**
 * The expected outcome of an operation that the sender's role permits: possible statuses of a refusal, audit entry, and
 * change of the model.
 */
type Effect = Pick<Plan, "refusals" | "entry" | "apply">;

/** Plans an operation that accepts only users' tokens. {@link senderOf} describes `minimum` and `path`. */
function planOfUser(
  { model, credential }: { readonly model: Model; readonly credential: Credential },
  { id, ...options }: Pick<Plan, "id"> & CallOptions,
  effectOf: (sender: Sender) => Effect,
  minimum?: Role,
  path?: Place,
): Plan {
  const sender = senderOf(model, credential, minimum, path);
  const effect =
    typeof sender === "number" ? { refusals: [sender], entry: null, apply() {} } : effectOf(sender);
  return { id, actor: credential, options: { ...options, ...credentialsOf(credential) }, ...effect };
}

const entryOf = (
  operation: Plan["id"],
  actor: User,
  tenantId: string | null,
  objectKind: string,
  objectId: string,
): Entry => ({ tenantId, operation, actorKind: "user", actorId: actor.id, objectKind, objectId });

/**
 * Rules 15.3: the maximum role of a key is the role of its creator. An owner may create a key with the owner's role
 * (D25).
 */
const isAbove = (role: Role, own: Role | null): boolean => own === null || rank(role) > rank(own);

/** Plans the creation of an API key (rules 15.1 to 15.5). */
export function planCreateKey(
  model: Model,
  credential: Credential,
  requested: Role | "",
  days: number,
): Plan {
  const id = "createApiKey";
  const name = `key-${model.keyNames.length}`;
  const body = { name, expires_at: days, role: requested };
  return planOfUser(
    { model, credential },
    { id, body },
    ({ tenant, user, role: own }) => {
      const role = requested || (own as Role);
      return {
        refusals: deniedBy([isAbove(role, own), 403]),
        entry: entryOf(id, user, tenant, "apiKey", name),
        apply: ({ body: created }) => {
          model.keyNames.push(name);
          model.place(tenant)?.keys.set(name, { role });
          const expires = days < 0 ? Number.POSITIVE_INFINITY : model.now + days * 86_400;
          model.credentials.push({ kind: "key", secret: created.id, tenant, name, expires });
        },
      };
    },
    "administrator",
  );
}

/** Plans a change of an API key's role (rules 15.6). A key still exists after its expiry. */
export function planUpdateKey(model: Model, credential: Credential, name: string, role: Role): Plan {
  const id = "updateApiKey";
  return planOfUser(
    { model, credential },
    { id, params: { key: name }, body: { role } },
    ({ tenant, user, role: own }) => {
      const key = model.place(tenant)?.keys.get(name);
      return {
        refusals: deniedBy([key === undefined, 404], [isAbove(role, own), 403]),
        entry: key?.role === role ? null : entryOf(id, user, tenant, "apiKey", name),
        apply: () => {
          if (key) key.role = role;
        },
      };
    },
    "administrator",
  );
}

/** Plans the deletion of an API key (rules 15.7). */
export function planDeleteKey(model: Model, credential: Credential, name: string): Plan {
  const id = "deleteApiKey";
  return planOfUser(
    { model, credential },
    { id, params: { key: name } },
    ({ tenant, user }) => {
      const keys = model.place(tenant)?.keys;
      return {
        refusals: deniedBy([!keys?.has(name), 404]),
        entry: entryOf(id, user, tenant, "apiKey", name),
        apply: () => void keys?.delete(name),
      };
    },
    "administrator",
  );
}

interface Members {
  readonly model: Model;
  readonly credential: Credential;
  readonly place: Place;
  readonly user: User;
}

/** Plans the invitation of a member (rules 5.8 and 5.9). */
export function planInvite(target: Members, role: Role): Plan {
  const { model, place, user } = target;
  const id = "inviteMember";
  return planOfUser(
    target,
    { id, params: { tenant: place.tenant }, body: { email: user.email, role } },
    (sender) => ({
      refusals: deniedBy([!mayGive(sender.role, role), 403], [place.members.has(user), 409]),
      entry: entryOf(id, sender.user, place.tenant, "member", user.id),
      apply: () => place.members.set(user, { role, since: model.now }),
    }),
    "administrator",
    place,
  );
}

/** Plans a change of a member's role (rules 5.11). */
export function planPromote(target: Members, role: Role): Plan {
  const { place, user } = target;
  const id = "updateMember";
  const member = place.members.get(user);
  return planOfUser(
    target,
    { id, params: { tenant: place.tenant, uid: user.id }, body: { role } },
    (sender) => ({
      refusals: deniedBy(
        [member === undefined, 404],
        [member?.role === "owner" || !mayGive(sender.role, role), 403],
      ),
      entry: member?.role === role ? null : entryOf(id, sender.user, place.tenant, "member", user.id),
      apply: () => {
        if (member) member.role = role;
      },
    }),
    "administrator",
    place,
  );
}

/** Plans the removal of a member (rules 5.12). */
export function planRemove(target: Members): Plan {
  const { place, user } = target;
  const id = "removeMember";
  const member = place.members.get(user);
  return planOfUser(
    target,
    { id, params: { tenant: place.tenant, uid: user.id } },
    (sender) => ({
      refusals: deniedBy(
        [member === undefined, 404],
        [member !== undefined && !mayGive(sender.role, member.role), 403],
      ),
      entry: entryOf(id, sender.user, place.tenant, "member", user.id),
      apply: () => void place.members.delete(user),
    }),
    "administrator",
    place,
  );
}

/** Plans that a member leaves a namespace (rules 5.7). The member may use a token of any namespace. */
export function planLeave(target: Omit<Members, "user">): Plan {
  const { model, credential, place } = target;
  const id = "leaveNamespace";
  return planOfUser(target, { id, params: { tenant: place.tenant } }, ({ user, tenant }) => {
    const role = place.members.get(user)?.role;
    return {
      refusals: deniedBy([role === undefined || role === "owner", 403]),
      entry: entryOf(id, user, place.tenant, "member", user.id),
      apply: ({ body }) => {
        place.members.delete(user);
        expect(body !== undefined).toBe(tenant === place.tenant);
        if (body === undefined) return;
        expect(model.homesOf(user)).toContain(body.tenant);
        model.addToken(user, body.tenant, body.token, credential.kind === "token" ? credential : null);
      },
    };
  });
}

const WRONG = "wrong-horse";

/** Plans a login (rules 9 and 11). During a lock, the service refuses the right password too, and counts no attempt. */
export function planLogin(model: Model, user: User, right: boolean): Plan {
  const body = { username: user.username, password: right ? user.password : WRONG };
  const request = { id: "login", options: { body }, entry: null } as const;
  if (model.isLocked(user, "login")) return { ...request, refusals: [429], apply() {} };
  if (!right) {
    const locks = model.countFailure(user, "login");
    return { ...request, refusals: [locks ? 429 : 401], apply() {} };
  }
  return {
    ...request,
    refusals: [],
    apply: ({ body: session }) => {
      user.failures.delete("login");
      expect(model.homesOf(user)).toContain(session.tenant);
      model.addToken(user, session.tenant, session.token, null);
    },
  };
}

/** Plans a switch to another namespace (rules 5.14). */
export function planSwitch(target: Omit<Members, "user">): Plan {
  const { model, credential, place } = target;
  return planOfUser(target, { id: "getNamespaceToken", params: { tenant: place.tenant } }, ({ user }) => ({
    refusals: deniedBy([!place.members.has(user), 404]),
    entry: null,
    apply: ({ body }) => {
      user.preferred = place.tenant;
      model.addToken(user, place.tenant, body.token, credential.kind === "token" ? credential : null);
    },
  }));
}

/**
 * Plans a change of the password. A new password voids the user's other tokens. A wrong current password counts like a
 * wrong login.
 */
export function planChangePassword(model: Model, credential: Credential, right: boolean): Plan {
  const id = "updateUser";
  const owner = credential.kind === "token" ? credential.user : undefined;
  const password = owner?.password === "another-horse" ? "third-horse" : "another-horse";
  const body = { password, current_password: right ? owner?.password : WRONG };
  return planOfUser({ model, credential }, { id, body }, ({ user }) => {
    if (model.isLocked(user, "password")) return { refusals: [429], entry: null, apply() {} };
    if (!right) {
      const locks = model.countFailure(user, "password");
      return { refusals: [locks ? 429 : 400], entry: null, apply() {} };
    }
    return {
      refusals: [],
      entry: entryOf(id, user, null, "user", user.id),
      apply: () => {
        user.failures.delete("password");
        if (credential.kind === "token") model.changePassword(user, password, credential);
      },
    };
  });
}
