import type { Role } from "@gatehouse-access/sdk/contract";
import type { Credential, Model, User } from "./model.ts";
import { rank } from "./model.ts";
import { credentialsOf, type Plan, refusedBy, senderOf } from "./plan.ts";

const DAY = 86_400;

const entryOf = (operation: string, actor: User, tenantId: string, name: string) =>
  ({
    tenantId,
    operation,
    actorKind: "user",
    actorId: actor.id,
    objectKind: "apiKey",
    objectId: name,
  }) as const;

/** Rules 15.3: a key's role is at most that of who makes it; an owner may make an owner's key (D25). */
const isAbove = (role: Role, own: Role | null): boolean => own === null || rank(role) > rank(own);

/** Rules 15.1 to 15.5. */
export function planCreateKey(model: Model, credential: Credential, asked: Role | "", days: number): Plan {
  const name = `key-${model.keyNames.length}`;
  const sender = senderOf(model, credential, "administrator");
  const body = { name, expires_at: days, role: asked };
  const request = {
    id: "createApiKey",
    actor: credential,
    options: { body, ...credentialsOf(credential) },
  } as const;
  if (typeof sender === "number") return { ...request, refusals: [sender], entry: null, apply() {} };
  const { tenant, user } = sender;
  const role = asked || (sender.role as Role);
  return {
    ...request,
    refusals: refusedBy([isAbove(role, sender.role), 403]),
    entry: entryOf("createApiKey", user, tenant, name),
    apply: ({ body: made }) => {
      model.keyNames.push(name);
      model.place(tenant)?.keys.set(name, { role });
      const expires = days < 0 ? Number.POSITIVE_INFINITY : model.now + days * DAY;
      model.credentials.push({ kind: "key", secret: made.id, tenant, name, expires });
    },
  };
}

/** Rules 15.6; an expired key is still there. */
export function planUpdateKey(model: Model, credential: Credential, name: string, role: Role): Plan {
  const sender = senderOf(model, credential, "administrator");
  const options = { params: { key: name }, body: { role } };
  const request = {
    id: "updateApiKey",
    actor: credential,
    options: { ...options, ...credentialsOf(credential) },
  } as const;
  if (typeof sender === "number") return { ...request, refusals: [sender], entry: null, apply() {} };
  const { tenant, user } = sender;
  const key = model.place(tenant)?.keys.get(name);
  return {
    ...request,
    refusals: refusedBy([key === undefined, 404], [isAbove(role, sender.role), 403]),
    entry: key?.role === role ? null : entryOf("updateApiKey", user, tenant, name),
    apply: () => {
      if (key) key.role = role;
    },
  };
}

/** Rules 15.7. */
export function planDeleteKey(model: Model, credential: Credential, name: string): Plan {
  const sender = senderOf(model, credential, "administrator");
  const options = { params: { key: name } };
  const request = {
    id: "deleteApiKey",
    actor: credential,
    options: { ...options, ...credentialsOf(credential) },
  } as const;
  if (typeof sender === "number") return { ...request, refusals: [sender], entry: null, apply() {} };
  const { tenant, user } = sender;
  const keys = model.place(tenant)?.keys;
  return {
    ...request,
    refusals: refusedBy([!keys?.has(name), 404]),
    entry: entryOf("deleteApiKey", user, tenant, name),
    apply: () => void keys?.delete(name),
  };
}
