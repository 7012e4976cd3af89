import { expect } from "vitest";
import type { Credential, Model, Place, User } from "./model.ts";
import { credentialsOf, type Plan, refusedBy, senderOf } from "./plan.ts";

const WRONG = "wrong-horse";

/** Rules 9 and 11: a lock refuses the right password too, and counts nothing. */
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

/** Rules 5.14. */
export function planSwitch(model: Model, credential: Credential, place: Place): Plan {
  const sender = senderOf(model, credential);
  const request = {
    id: "getNamespaceToken",
    actor: credential,
    options: { params: { tenant: place.tenant }, ...credentialsOf(credential) },
    entry: null,
  } as const;
  if (typeof sender === "number") return { ...request, refusals: [sender], apply() {} };
  const { user } = sender;
  return {
    ...request,
    refusals: refusedBy([!place.members.has(user), 404]),
    apply: ({ body }) => {
      user.preferred = place.tenant;
      model.addToken(user, place.tenant, body.token, credential.kind === "token" ? credential : null);
    },
  };
}

/** A new password voids the other tokens of the user; wrong present ones are counted as wrong logins are. */
export function planChangePassword(model: Model, credential: Credential, right: boolean): Plan {
  const sender = senderOf(model, credential);
  const user = credential.kind === "token" ? credential.user : undefined;
  const password = user?.password === "another-horse" ? "third-horse" : "another-horse";
  const body = { password, current_password: right ? user?.password : WRONG };
  const request = {
    id: "updateUser",
    actor: credential,
    options: { body, ...credentialsOf(credential) },
  } as const;
  if (typeof sender === "number") return { ...request, refusals: [sender], entry: null, apply() {} };
  const { user: self } = sender;
  if (model.isLocked(self, "password")) return { ...request, refusals: [429], entry: null, apply() {} };
  if (!right) {
    const locks = model.countFailure(self, "password");
    return { ...request, refusals: [locks ? 429 : 400], entry: null, apply() {} };
  }
  return {
    ...request,
    refusals: [],
    entry: {
      tenantId: null,
      operation: "updateUser",
      actorKind: "user",
      actorId: self.id,
      objectKind: "user",
      objectId: self.id,
    },
    apply: () => {
      self.failures.delete("password");
      if (credential.kind === "token") model.changePassword(self, password, credential);
    },
  };
}
