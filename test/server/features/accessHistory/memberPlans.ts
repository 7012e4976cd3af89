import type { Role } from "@gatehouse-access/sdk/contract";
import { expect } from "vitest";
import type { Credential, Model, Place, User } from "./model.ts";
import { credentialsOf, mayGive, type Plan, refusedBy, senderOf } from "./plan.ts";

interface Members {
  readonly model: Model;
  readonly credential: Credential;
  readonly place: Place;
  readonly user: User;
}

const entryOf = (operation: string, actor: User, { tenant }: Place, member: User) =>
  ({
    tenantId: tenant,
    operation,
    actorKind: "user",
    actorId: actor.id,
    objectKind: "member",
    objectId: member.id,
  }) as const;

/** Rules 5.8 and 5.9. */
export function planInvite({ model, credential, place, user }: Members, role: Role): Plan {
  const sender = senderOf(model, credential, "administrator", place);
  const options = { params: { tenant: place.tenant }, body: { email: user.email, role } };
  const request = {
    id: "inviteMember",
    actor: credential,
    options: { ...options, ...credentialsOf(credential) },
  } as const;
  if (typeof sender === "number") return { ...request, refusals: [sender], entry: null, apply() {} };
  return {
    ...request,
    refusals: refusedBy([!mayGive(sender.role, role), 403], [place.members.has(user), 409]),
    entry: entryOf("inviteMember", sender.user, place, user),
    apply: () => place.members.set(user, { role, since: model.now }),
  };
}

/** Rules 5.11. */
export function planPromote({ model, credential, place, user }: Members, role: Role): Plan {
  const sender = senderOf(model, credential, "administrator", place);
  const options = { params: { tenant: place.tenant, uid: user.id }, body: { role } };
  const request = {
    id: "updateMember",
    actor: credential,
    options: { ...options, ...credentialsOf(credential) },
  } as const;
  if (typeof sender === "number") return { ...request, refusals: [sender], entry: null, apply() {} };
  const member = place.members.get(user);
  const forbidden = member?.role === "owner" || !mayGive(sender.role, role);
  return {
    ...request,
    refusals: refusedBy([member === undefined, 404], [forbidden, 403]),
    entry: member?.role === role ? null : entryOf("updateMember", sender.user, place, user),
    apply: () => {
      if (member) member.role = role;
    },
  };
}

/** Rules 5.12. */
export function planRemove({ model, credential, place, user }: Members): Plan {
  const sender = senderOf(model, credential, "administrator", place);
  const options = { params: { tenant: place.tenant, uid: user.id } };
  const request = {
    id: "removeMember",
    actor: credential,
    options: { ...options, ...credentialsOf(credential) },
  } as const;
  if (typeof sender === "number") return { ...request, refusals: [sender], entry: null, apply() {} };
  const member = place.members.get(user);
  const forbidden = member !== undefined && !mayGive(sender.role, member.role);
  return {
    ...request,
    refusals: refusedBy([member === undefined, 404], [forbidden, 403]),
    entry: entryOf("removeMember", sender.user, place, user),
    apply: () => void place.members.delete(user),
  };
}

/** Rules 5.7: whichever namespace the token is for, a member may leave. */
export function planLeave({ model, credential, place }: Omit<Members, "user">): Plan {
  const sender = senderOf(model, credential);
  const request = {
    id: "leaveNamespace",
    actor: credential,
    options: { params: { tenant: place.tenant }, ...credentialsOf(credential) },
  } as const;
  if (typeof sender === "number") return { ...request, refusals: [sender], entry: null, apply() {} };
  const { user, tenant } = sender;
  const role = place.members.get(user)?.role;
  return {
    ...request,
    refusals: refusedBy([role === undefined || role === "owner", 403]),
    entry: entryOf("leaveNamespace", user, place, user),
    apply: ({ body }) => {
      place.members.delete(user);
      expect(body !== undefined).toBe(tenant === place.tenant);
      if (body === undefined) return;
      expect(model.homesOf(user)).toContain(body.tenant);
      model.addToken(user, body.tenant, body.token, credential.kind === "token" ? credential : null);
    },
  };
}
