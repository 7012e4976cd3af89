import type { ResourceValues } from "../../engine/index.ts";
import { apiKey } from "../../resources/apiKey.ts";
import { member } from "../../resources/member.ts";
import { apiKeyIdentity } from "../../service/listings.ts";
import { isHidden } from "../steps.ts";
import { CannotTell, type Draft, GONE, inputsOf, type Kind, outputOf } from "./draft.ts";

const DAY_MS = 86_400_000;

/** How long an invitation is open (rules section 5). */
const INVITATION_MS = 7 * DAY_MS;

const userOf = ({ members }: Draft, email: string) =>
  [...(members?.values() ?? [])].find((member) => member.email.toLowerCase() === email)?.id;

/**
 * Members by user id. A new one counts as pending, since some services ask people first. What the service gives by
 * itself (id, dates) is as of now, and empty where only the service can tell.
 */
export const memberKind: Kind = {
  decisive: ["email", "role"],
  idOf: (draft, _step, after) => userOf(draft, inputsOf(member, after).email),
  isLive: ({ estate }, id) => estate.members?.some((entry) => entry.id === id) ?? false,
  remove(draft, _step, before) {
    draft.members?.delete(outputOf(before, "userId"));
  },
  bring(draft, _step, after) {
    const { email, role } = inputsOf(member, after);
    const known = draft.members?.get(userOf(draft, email) ?? "");
    const { now } = draft;
    draft.members?.set(known?.id ?? email, {
      ...{ id: "", email, status: "pending", type: "team", addedAt: now.toISOString() },
      expiresAt: new Date(now.getTime() + INVITATION_MS).toISOString(),
      ...known,
      role,
    });
  },
  change(draft, _step, before, after) {
    if (!draft.members) return;
    const userId = outputOf(before, "userId");
    const known = draft.members.get(userId);
    if (!known) throw new CannotTell(GONE);
    draft.members.set(userId, { ...known, role: inputsOf(member, after).role });
  },
};

const identityOf = ({ outputs }: ResourceValues) =>
  apiKeyIdentity({ createdAt: String(outputs.createdAt), createdBy: String(outputs.createdBy) });

/** Keys that were replaced, and go on working until a time. */
const previousOf = ({ outputs }: ResourceValues): { identity: string; until: string }[] =>
  [outputs.previous ?? []].flat().flatMap((old) => {
    if (typeof old !== "object" || old === null || Array.isArray(old)) return [];
    const { createdAt, createdBy, until } = old;
    return [
      {
        identity: apiKeyIdentity({ createdAt: String(createdAt), createdBy: String(createdBy) }),
        until: String(until),
      },
    ];
  });

/** API keys by `apiKeyIdentity`, which never changes. */
export const apiKeyKind: Kind = {
  decisive: ["role", "validDays"],
  idOf: () => undefined,
  isLive: ({ estate }, id) => estate.apiKeys?.some(({ name }) => name === id) ?? false,
  remove(draft, { step, after }, before) {
    if (!draft.apiKeys) return;
    const own = identityOf(before);
    const overlap = after ? (inputsOf(apiKey, after).overlap ?? 0) : 0;
    const left = draft.apiKeys.get(own);
    if (step.op === "replace" && overlap > 0) {
      // No two keys have one name: the provider renames the old one.
      if (left && left.name === after?.inputs.name)
        draft.apiKeys.set(own, { ...left, name: `${left.name} (replaced)` });
      return;
    }
    for (const identity of [own, ...previousOf(before).map((old) => old.identity)])
      draft.apiKeys.delete(identity);
  },
  bring(draft, { step }, after) {
    const { now, makerRole } = draft;
    const { name, role = makerRole, validDays } = inputsOf(apiKey, after);
    const createdAt = now.toISOString();
    draft.apiKeys?.set(step.urn, {
      name: name === undefined || isHidden(name) ? `${step.name} (new)` : name,
      role,
      // Seconds since 1970.
      expiresIn: validDays === -1 ? -1 : Math.floor((now.getTime() + validDays * DAY_MS) / 1000),
      ...{ createdAt, updatedAt: createdAt, createdBy: "", tenantId: draft.estate.tenant },
    });
  },
  change(draft, _step, before, after) {
    if (!draft.apiKeys) return;
    const identity = identityOf(before);
    const key = draft.apiKeys.get(identity);
    if (!key) throw new CannotTell(GONE);
    const { name, role = key.role } = inputsOf(apiKey, after);
    draft.apiKeys.set(identity, {
      ...key,
      role,
      name: name === undefined || isHidden(name) ? key.name : name,
    });
    const now = draft.now.toISOString();
    for (const old of previousOf(before)) if (old.until <= now) draft.apiKeys.delete(old.identity);
  },
};

/** The name that a key of the state has on the service today, or in the state where it is gone. */
export function apiKeyNameToday({ estate }: Draft, before: ResourceValues): string {
  const own = identityOf(before);
  return estate.apiKeys?.find((key) => apiKeyIdentity(key) === own)?.name ?? outputOf(before, "name");
}
