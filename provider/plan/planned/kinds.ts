import { isDeepStrictEqual } from "node:util";
import { parseSshPublicKey, ROLES, type Role, sha256Fingerprint } from "@gatehouse-access/sdk/contract";
import {
  type AccessKey,
  type AccessPolicy,
  type AccessRule,
  type DeviceFilter,
  hasPassed,
  type PolicySubject,
} from "@gatehouse-access/sdk/policy";
import { ownTypeName, type ResourceValues, type Shown, urnType } from "../../engine/index.ts";
import { endOf, refusedTypeOf, sshFingerprint, type Workload } from "../../estate/namespaceState.ts";
import { accessPolicy, isDeclaredBy } from "../../resources/accessPolicy.ts";
import { apiKey, overlapDays } from "../../resources/apiKey.ts";
import type { InputValues, ResourceDefinition } from "../../resources/definition.ts";
import { device } from "../../resources/device.ts";
import { claimOfTag, deviceTagAttachment } from "../../resources/deviceTagAttachment.ts";
import { deviceTags } from "../../resources/deviceTags.ts";
import { firewallRule } from "../../resources/firewallRule.ts";
import { member } from "../../resources/member.ts";
import { plannedSettings } from "../../resources/namespace.ts";
import { publicKey } from "../../resources/publicKey.ts";
import { serviceAccount } from "../../resources/serviceAccount.ts";
import { tag } from "../../resources/tag.ts";
import { trustedWorkload } from "../../resources/trustedWorkload.ts";
import { NEVER } from "../../resources/validity.ts";
import { canonical, canonicalInputs } from "../../resources/values.ts";
import { apiKeyIdentity, macOf } from "../../service/listings.ts";
import type { Member } from "../../service/newerListings.ts";
import { hasOwnCredential, isHidden, type PlannedStep } from "../steps.ts";
import { type Draft, hiddenValues, UnpredictableError } from "./draft.ts";

/**
 * Applies the planned steps of one resource type to a {@link Draft}. All functions may throw {@link
 * UnpredictableError}.
 */
export interface Kind {
  /** Names of the inputs that must be known to predict the object. */
  readonly decisive: readonly string[];
  /**
   * Returns the id of the object that a new resource will have, without the namespace. Undefined if the service has not
   * assigned the id yet.
   */
  idOf?(draft: Draft, after: ResourceValues, step: PlannedStep): string | undefined;
  /** True if an object with this id exists on the service. */
  isLive?(draft: Draft, id: string): boolean;
  /**
   * Removes the object of a resource.
   * @param isClaimed returns true if a resource of the program manages the object with this key and does not share the
   * object with other resources
   */
  remove?(draft: Draft, step: PlannedStep, before: ResourceValues, isClaimed: (key: string) => boolean): void;
  createOrAdopt?(draft: Draft, step: PlannedStep, after: ResourceValues): void;
  update?(draft: Draft, step: PlannedStep, before: ResourceValues, after: ResourceValues): void;
  /** Returns the end of the access, in RFC 3339, if it is known. @default the input `expiresAt` */
  endOf?(after: ResourceValues, now: Date): string | undefined;
}

/** The canonical inputs of a resource. The {@link Kind.decisive} inputs must be known. */
function inputsOf<I extends ResourceDefinition["inputs"]>(
  definition: Pick<ResourceDefinition<I>, "inputs">,
  { inputs }: ResourceValues,
): InputValues<I> {
  return canonicalInputs(definition.inputs, inputs) as InputValues<I>;
}

/** Returns an output from a resource's values if it is a string, otherwise an empty string. */
function outputOf({ outputs }: ResourceValues, name: string): string {
  const value = outputs[name];
  return typeof value === "string" ? value : "";
}

/** Returns the object with this id from a map of objects. @throws UnpredictableError if the object no longer exists */
function existing<T>(objects: ReadonlyMap<string, T>, id: string): T {
  const object = objects.get(id);
  if (!object) throw new UnpredictableError("its object no longer exists; refresh the state and plan again");
  return object;
}

const isLiveDevice = ({ estate }: Draft, id: string) =>
  estate.devices.some(({ uid }) => uid === id.split("/")[0]);

function settle(draft: Draft, uid: string, after: ResourceValues): void {
  const { name, status } = inputsOf(device, after);
  if (name !== undefined) draft.changeDevice(uid, { name });
  const { status: today } = draft.device(uid);
  if (status === "accepted" && today !== "accepted") accept(draft, uid);
  if (status === "rejected" && today === "accepted")
    throw new UnpredictableError("it rejects an accepted device, which the service does not allow");
  if (status === "rejected") draft.changeDevice(uid, { status });
}

/**
 * Accepts a device. A machine that enrolled again with a new key replaces its old device and keeps the name (rules
 * section 7).
 */
function accept(draft: Draft, uid: string): void {
  const mac = macOf(draft.device(uid));
  const former = [...draft.devices.values()].find(
    (other) => mac !== "" && other.uid !== uid && other.status === "accepted" && macOf(other) === mac,
  );
  if (former) draft.removeDevice(former.uid);
  draft.changeDevice(uid, { status: "accepted", ...(former && { name: former.name }) });
}

/** Name and status of a device. Plans do not create devices, since devices enroll without a plan. */
const deviceKind: Kind = {
  decisive: ["device", "name", "status"],
  idOf: (draft, after) => draft.uidOf(inputsOf(device, after).device),
  isLive: isLiveDevice,
  remove(draft, _step, before) {
    if (before.outputs.onDestroy === "remove") draft.removeDevice(outputOf(before, "uid"));
  },
  createOrAdopt: (draft, _step, after) => settle(draft, draft.uidOf(inputsOf(device, after).device), after),
  update: (draft, _step, before, after) => settle(draft, draft.device(outputOf(before, "uid")).uid, after),
};

const setTags = (draft: Draft, uid: string, after: ResourceValues) =>
  draft.changeDevice(draft.device(uid).uid, { tags: [...inputsOf(deviceTags, after).tags] });

const removeTags = (draft: Draft, uid: string, isRemoved: (tag: string) => boolean) =>
  draft.changeDevice(uid, { tags: draft.devices.get(uid)?.tags.filter((tag) => !isRemoved(tag)) ?? [] });

const deviceTagsKind: Kind = {
  decisive: ["device", "tags"],
  idOf: (draft, after) => draft.uidOf(inputsOf(deviceTags, after).device),
  isLive: isLiveDevice,
  remove(draft, _step, before, isClaimed) {
    const uid = outputOf(before, "uid");
    const { tenant } = draft.estate;
    const tags = [before.outputs.tags].flat();
    removeTags(draft, uid, (tag) => tags.includes(tag) && !isClaimed(claimOfTag(`${tenant}/${uid}/${tag}`)));
  },
  createOrAdopt: (draft, _step, after) =>
    setTags(draft, draft.uidOf(inputsOf(deviceTags, after).device), after),
  update: (draft, _step, before, after) => setTags(draft, outputOf(before, "uid"), after),
};

/**
 * One tag of a device. An update only changes the selector, and the new selector still matches the same device, so the
 * object does not change. Other changes replace the resource.
 */
const attachmentKind: Kind = {
  decisive: ["device", "tag"],
  idOf(draft, after) {
    const { device, tag } = inputsOf(deviceTagAttachment, after);
    return `${draft.uidOf(device)}/${tag}`;
  },
  isLive(draft, id) {
    const [uid, tag = ""] = id.split("/");
    return draft.estate.devices.some((device) => device.uid === uid && device.tags.includes(tag));
  },
  remove(draft, { step }) {
    const [, uid = "", tag = ""] = step.id?.split("/") ?? [];
    removeTags(draft, uid, (other) => other === tag);
  },
  createOrAdopt(draft, _step, after) {
    const { device, tag } = inputsOf(deviceTagAttachment, after);
    const { uid, tags } = draft.device(draft.uidOf(device));
    if (!tags.includes(tag)) draft.changeDevice(uid, { tags: [...tags, tag] });
  },
};

/**
 * Renames tags on every device, key and rule. All renames are applied at once, since one tag may take the old name of
 * another tag.
 * @param renames steps that update a Tag
 */
export function renameTags(draft: Draft, renames: readonly PlannedStep[]): void {
  const names = new Map<string, string>();
  for (const { before, after } of renames) {
    if (before && after) names.set(outputOf(before, "name"), inputsOf(tag, after).name);
  }
  const renamed = (tags: readonly string[]) => tags.map((name) => names.get(name) ?? name);
  const filtered = (filter: DeviceFilter): DeviceFilter =>
    filter.tags ? { ...filter, tags: renamed(filter.tags) } : filter;
  for (const { uid, tags } of draft.devices.values()) draft.changeDevice(uid, { tags: renamed(tags) });
  const { keys, rules, policies } = draft;
  for (const map of [keys, rules, policies] as (Map<string, { filter: DeviceFilter }> | undefined)[]) {
    for (const [id, object] of map ?? []) map?.set(id, { ...object, filter: filtered(object.filter) });
  }
}

/**
 * Returns the time when the access by an object ends, in the form of a policy. Undefined if it does not end.
 * @throws UnpredictableError if the time is not valid
 */
function declaredEnd({ inputs: { expiresAt } }: ResourceValues): string | undefined {
  if (typeof expiresAt !== "string" || expiresAt === "") return undefined;
  if (Number.isNaN(Date.parse(expiresAt))) throw new UnpredictableError("its expiresAt is not a valid time");
  return new Date(expiresAt).toISOString();
}

/** Returns the declared end like {@link declaredEnd}. Undefined if it is secret or unknown. */
export const shownEnd = (after: ResourceValues): string | undefined =>
  isHidden(after.inputs.expiresAt) ? undefined : declaredEnd(after);

/** Returns the end of an object for the policy. A server that does not end access by itself does not store the end. */
const plannedEnd = ({ estate }: Draft, after: ResourceValues) =>
  endOf(estate.enforcesExpiry ? declaredEnd(after) : undefined);

/** Applies an update. After the end of the access, deletes an object that no longer exists or that the run removes. */
function change<T>(
  { estate, now }: Draft,
  objects: Map<string, T>,
  id: string,
  after: ResourceValues,
  changed: (object: T) => T,
): void {
  const end = declaredEnd(after);
  const isOver = end !== undefined && hasPassed(end, now);
  if (isOver && !(estate.enforcesExpiry && objects.has(id))) objects.delete(id);
  else objects.set(id, changed(existing(objects, id)));
}

/**
 * Returns the owner of a planned key: the id of the member with the declared e-mail address. A user who is not a member
 * has the address as id, so that the key admits no logins.
 * @throws UnpredictableError if the members could not be read
 */
function plannedOwner(draft: Draft, after: ResourceValues, before: ResourceValues | undefined) {
  const { owner } = after.inputs;
  if (typeof owner !== "string" || owner === "" || !draft.estate.enforcesExpiry) return {};
  // Users can change the address of their account. The declared address then still refers to the same user.
  // Drift of a deleted key restores the key with the owner in the state.
  const stated = before?.inputs.owner === owner ? before : before ? undefined : after;
  const ownerId = stated ? outputOf(stated, "ownerId") : "";
  const known = isHidden(ownerId) ? "" : ownerId;
  if (known === "" && !draft.members)
    throw new UnpredictableError("its owner cannot be found, because the members could not be read");
  const email = owner.toLowerCase();
  return { owner: known || draft.userIdOf(email) || email };
}

const fingerprintOf = (after: ResourceValues) =>
  parseSshPublicKey(inputsOf(publicKey, after).data).fingerprint;

function keyOf(
  draft: Draft,
  { step, before }: PlannedStep,
  after: ResourceValues,
): Omit<AccessKey, "fingerprint"> {
  const { name, username, filter, data } = inputsOf(publicKey, after);
  const about = { name: isHidden(name) ? step.name : name, username, filter };
  const type = {
    ...refusedTypeOf(data, draft.estate.enforcesExpiry),
    ...(draft.estate.identity && sshFingerprint(data)),
  };
  return { ...about, ...type, ...plannedEnd(draft, after), ...plannedOwner(draft, after, before) };
}

const keyKind: Kind = {
  decisive: ["data", "username", "filter", "expiresAt", "owner"],
  idOf: (_draft, after) => fingerprintOf(after),
  isLive: ({ estate }, id) => estate.policy.keys.some(({ fingerprint }) => fingerprint === id),
  remove: (draft, _step, before) => draft.keys.delete(outputOf(before, "fingerprint")),
  createOrAdopt(draft, step, after) {
    const fingerprint = fingerprintOf(after);
    draft.keys.set(fingerprint, { fingerprint, ...keyOf(draft, step, after) });
  },
  update: (draft, step, before, after) =>
    change(draft, draft.keys, outputOf(before, "fingerprint"), after, ({ fingerprint }) => ({
      fingerprint,
      ...keyOf(draft, step, after),
    })),
};

function ruleOf(draft: Draft, after: ResourceValues, id: string): AccessRule {
  const { action, active = true, priority, sourceIp, username, filter } = inputsOf(firewallRule, after);
  return { id, action, active, priority, sourceIp, username, filter, ...plannedEnd(draft, after) };
}

/** Returns the id of the identical live rule that a resource adopts; undefined if the resource adopts no rule. */
function adoptedRule(draft: Draft, after: ResourceValues): string | undefined {
  if (!after.inputs.adopt) return undefined;
  const comparable = (rule: AccessRule) => ({
    ...rule,
    id: "",
    filter: canonical(firewallRule.inputs.filter, rule.filter),
  });
  const wanted = comparable(ruleOf(draft, after, ""));
  return draft.estate.policy.rules.find((rule) => isDeepStrictEqual(comparable(rule), wanted))?.id;
}

/**
 * Returns an unused placeholder id for a new rule or policy. The resource name alone is not unique, since resources with
 * different parents may have the same name.
 */
function newId(objects: ReadonlyMap<string, unknown>, name: string, count = 1): string {
  const id = count === 1 ? `${name} (new)` : `${name} (new, ${count})`;
  return objects.has(id) ? newId(objects, name, count + 1) : id;
}

const ruleKind: Kind = {
  decisive: ["action", "active", "priority", "sourceIp", "username", "filter", "expiresAt"],
  idOf: adoptedRule,
  isLive: ({ estate }, id) => estate.policy.rules.some((rule) => rule.id === id),
  remove: (draft, _step, before) => draft.rules.delete(outputOf(before, "ruleId")),
  createOrAdopt(draft, { step }, after) {
    const id = adoptedRule(draft, after) ?? newId(draft.rules, step.name);
    draft.rules.set(id, ruleOf(draft, after, id));
  },
  update: (draft, _step, before, after) =>
    change(draft, draft.rules, outputOf(before, "ruleId"), after, ({ id }) => ruleOf(draft, after, id)),
};

/**
 * Returns the subject of a policy. A preview does not know the id of a principal that the plan creates, but it knows the
 * resource from which the program takes the id.
 */
function subjectOf({ newPrincipals }: Draft, after: ResourceValues): PolicySubject {
  const { subject } = inputsOf(accessPolicy, after);
  if (!isHidden(after.inputs.subject)) {
    if (subject.role !== undefined) return { type: "role", value: subject.role };
    return subject.user === undefined
      ? { type: "all-members", value: "" }
      : { type: "user", value: subject.user };
  }
  // With further references, the id can belong to another principal.
  const [urn = "", ...others] = after.references?.subject ?? [];
  const isUser = typeof subject === "object" && Object.keys(subject).join() === "user";
  const value = isUser && others.length === 0 ? newPrincipals.get(urn) : undefined;
  if (value === undefined) throw hiddenValues(["subject"]);
  return { type: "user", value };
}

function policyOf(draft: Draft, after: ResourceValues, id: string): AccessPolicy {
  const { name, filter, logins, sourceIps = [], action = "allow", ...reauth } = inputsOf(accessPolicy, after);
  const { requireReauth = false, reauthPeriod = 0 } = reauth;
  return {
    ...{ id, name: isHidden(name) ? id : name, subject: subjectOf(draft, after) },
    ...{ filter, logins, sourceIps, action, requireReauth },
    reauthPeriod: reauthPeriod === 0 ? null : reauthPeriod,
  };
}

/** Returns the id of the identical live policy that a resource adopts. No live policy has a subject of this plan. */
function adoptedPolicy({ estate }: Draft, after: ResourceValues): string | undefined {
  const values = inputsOf(accessPolicy, after);
  if (!after.inputs.adopt || isHidden(after.inputs.subject)) return undefined;
  return estate.identity?.policies.find((policy) => isDeclaredBy(policy, values))?.id;
}

const policyKind: Kind = {
  decisive: ["filter", "logins", "sourceIps", "action", "requireReauth", "reauthPeriod"],
  idOf: adoptedPolicy,
  isLive: ({ estate }, id) => estate.identity?.policies.some((policy) => policy.id === id) ?? false,
  remove: (draft, _step, before) => draft.policies?.delete(outputOf(before, "policyId")),
  createOrAdopt(draft, { step }, after) {
    if (!draft.policies) return;
    const id = adoptedPolicy(draft, after) ?? newId(draft.policies, step.name);
    draft.policies.set(id, policyOf(draft, after, id));
  },
  update(draft, _step, before, after) {
    if (!draft.policies) return;
    const { id } = existing(draft.policies, outputOf(before, "policyId"));
    draft.policies.set(id, policyOf(draft, after, id));
  },
};

/** Returns the id of the live account with the same key, which a new resource adopts. A replacement deletes it first. */
function adoptedAccount({ estate }: Draft, after: ResourceValues, { step }: PlannedStep): string | undefined {
  if (!after.inputs.adopt || step.op !== "create") return undefined;
  const fingerprint = sha256Fingerprint(parseSshPublicKey(inputsOf(serviceAccount, after).data));
  return estate.identity?.serviceAccounts.find(({ keys }) =>
    keys?.some((key) => key.fingerprint === fingerprint),
  )?.id;
}

const endAfter = (days: number, now: Date): string | undefined =>
  days === NEVER ? undefined : new Date(now.getTime() + days * DAY_MS).toISOString();

/** Service accounts. Each change replaces the account, which gets another id. */
const accountKind: Kind = {
  decisive: ["data", "validDays"],
  idOf: adoptedAccount,
  isLive: ({ estate }, id) => estate.identity?.serviceAccounts.some((account) => account.id === id) ?? false,
  remove: (draft, _step, before) => draft.serviceAccounts?.delete(outputOf(before, "accountId")),
  createOrAdopt(draft, planned, after) {
    const { serviceAccounts, newPrincipals, now } = draft;
    const { step } = planned;
    const live = adoptedAccount(draft, after, planned);
    if (live !== undefined) {
      newPrincipals.set(step.urn, live);
      return;
    }
    const { name, data, validDays = NEVER } = inputsOf(serviceAccount, after);
    const key = {
      fingerprint: sha256Fingerprint(parseSshPublicKey(data)),
      ...{ expiresAt: endAfter(validDays, now) ?? null },
      ...{ consumedAt: null, lastReauthAt: null },
    };
    // Drift of a deleted account restores the account with its id, to which access policies refer.
    const known = outputOf(after, "accountId");
    const id = known === "" || isHidden(known) ? `${step.urn} ${key.fingerprint}` : known;
    newPrincipals.set(step.urn, id);
    const kind = "service account";
    serviceAccounts?.set(id, {
      ...{ id, name: isHidden(name) ? step.name : name, kind, role: "service", keys: [key] },
    });
  },
  endOf(after, now) {
    const { expiresAt } = after.outputs;
    if (typeof expiresAt === "string" && !isHidden(expiresAt)) return expiresAt || undefined;
    const { validDays = NEVER } = after.inputs;
    return typeof validDays === "number" ? endAfter(validDays, now) : undefined;
  },
};

/** The policy that the service creates for the owner if a namespace without policies changes to identity mode. */
const ownerPolicy = (owner: string): AccessPolicy => ({
  ...{ id: "Owner access (new)", name: "Owner access", subject: { type: "user", value: owner } },
  ...{ filter: {}, logins: ["*"], sourceIps: [], action: "allow", requireReauth: false, reauthPeriod: null },
});

const namespaceKind: Kind = {
  decisive: [],
  isLive: ({ estate }, id) => estate.tenant === id,
  remove: (draft) => draft.clear(),
  createOrAdopt: (draft, _step, after) => changeSettings(draft, after),
  update: (draft, _step, _before, after) => changeSettings(draft, after),
};

function changeSettings(draft: Draft, after: ResourceValues): void {
  const { settings: live } = draft;
  const { settings: declared } = after.inputs;
  const planned = live && plannedSettings(live, declared, (value) => isHidden(value as Shown));
  if (planned) draft.settings = planned.settings;
  changeAccessMode(draft, after);
  const hidden = planned?.hidden.filter((name) => name !== "sshAccessMode") ?? [];
  if (hidden.length > 0)
    throw hiddenValues(hidden.map((name) => (name === "settings" ? name : `settings.${name}`)));
}

function changeAccessMode(draft: Draft, after: ResourceValues): void {
  const { estate, policies } = draft;
  const { settings } = after.inputs;
  const { sshAccessMode: mode } =
    typeof settings === "object" && settings !== null && !Array.isArray(settings)
      ? settings
      : { sshAccessMode: isHidden(settings) ? settings : undefined };
  const hasModes = estate.identity !== undefined || estate.accessUnknown !== undefined;
  if (isHidden(mode) && hasModes) throw hiddenValues(["access mode"]);
  if (mode !== "legacy" && mode !== "identity") return;
  if (!policies) {
    if (mode === "legacy") return;
    throw new UnpredictableError("the access policies could not be read");
  }
  const owner = estate.members?.find(({ role }) => role === "owner");
  const isSwitch = mode === "identity" && !draft.accessPoliciesDecide;
  // The service creates the policy of the owner if no policy exists at the time of the change. Only dependencies show
  // that the plan creates another policy before.
  const isAfterPolicy = after.dependsOn?.some((urn) => ownTypeName(urnType(urn)) === "AccessPolicy") ?? false;
  if (isSwitch && estate.identity?.policies.length === 0 && !(isAfterPolicy && policies.size > 0) && owner) {
    const policy = ownerPolicy(owner.id);
    policies.set(policy.id, policy);
  }
  draft.accessPoliciesDecide = mode === "identity";
}

const DAY_MS = 86_400_000;

/** Validity period of an invitation in milliseconds (rules section 5). */
const INVITATION_MS = 7 * DAY_MS;

/** Returns the planned or present member with an e-mail address; undefined if there is none. */
const memberWith = ({ members }: Draft, email: string): Member | undefined =>
  [...(members?.values() ?? [])].find((one) => one.email.toLowerCase() === email);

/**
 * Members of the namespace. A new member counts as pending, since some services send an invitation first. Fields that
 * the service sets keep their live values, and get default values for a new member.
 */
const memberKind: Kind = {
  decisive: ["email", "role", "expiresAt"],
  idOf: (draft, after) => memberWith(draft, inputsOf(member, after).email)?.id,
  isLive: ({ estate }, id) => estate.members?.some((entry) => entry.id === id) ?? false,
  remove: (draft, _step, before) => draft.members?.delete(outputOf(before, "userId")),
  createOrAdopt(draft, { step }, after) {
    const { email, role } = inputsOf(member, after);
    const known = memberWith(draft, email);
    const { now } = draft;
    // The keys of a user who returns admit logins again. Drift of a removed member restores the user with the id in the
    // state.
    const stated = outputOf(after, "userId");
    const returning = isHidden(stated) || stated === "" ? draft.userIdOf(email) : stated;
    const id = known?.id ?? returning ?? "";
    if (!known) draft.newPrincipals.set(step.urn, id || email);
    draft.members?.set(id || email, {
      id,
      email,
      status: "pending",
      type: "team",
      addedAt: now.toISOString(),
      expiresAt: new Date(now.getTime() + INVITATION_MS).toISOString(),
      ...known,
      ...{ role, accessExpiresAt: plannedEnd(draft, after).expiresAt },
    });
  },
  update(draft, _step, before, after) {
    const { role } = inputsOf(member, after);
    const accessExpiresAt = plannedEnd(draft, after).expiresAt;
    const changed = (known: Member) => ({ ...known, role, accessExpiresAt });
    if (draft.members) change(draft, draft.members, outputOf(before, "userId"), after, changed);
  },
};

const identityOf = ({ createdAt, createdBy }: ResourceValues["outputs"]) =>
  apiKeyIdentity({ createdAt: String(createdAt), createdBy: String(createdBy) });

/** Returns the identities of replaced API keys, and the time until which each key stays valid. */
const previousOf = ({ outputs }: ResourceValues) =>
  [outputs.previous ?? []]
    .flat()
    .flatMap((old: Shown) =>
      typeof old !== "object" || old === null || Array.isArray(old)
        ? []
        : [{ identity: identityOf(old), until: String(old.until) }],
    );

/** Returns the role in the state of an API key that drift restores; undefined for a new key. */
const restoredRole = ({ outputs }: ResourceValues): Role | undefined =>
  ROLES.find((known) => known === outputs.role);

const apiKeyKind: Kind = {
  decisive: ["role", "validDays"],
  isLive: ({ estate }, id) => estate.apiKeys?.some(({ name }) => name === id) ?? false,
  remove({ apiKeys }, { step, after }, before) {
    if (!apiKeys) return;
    const own = identityOf(before.outputs);
    const overlap = after ? overlapDays(inputsOf(apiKey, after)) : 0;
    const left = apiKeys.get(own);
    if (step.op === "replace" && overlap > 0) {
      // Names of keys are unique, so the provider renames the old key.
      if (left && left.name === after?.inputs.name)
        apiKeys.set(own, { ...left, name: `${left.name} (replaced)` });
      return;
    }
    for (const identity of [own, ...previousOf(before).map((old) => old.identity)]) apiKeys.delete(identity);
  },
  createOrAdopt(draft, { step, before }, after) {
    const { apiKeys, estate, now, creatorRole } = draft;
    const { name, role = restoredRole(after), validDays } = inputsOf(apiKey, after);
    const createdAt = now.toISOString();
    // The next key of a resource without a name gets a generated name, as the replaced key has.
    const generated = before ? apiKeyNameToday(draft, before) : `${step.name} (new)`;
    apiKeys?.set(step.urn, {
      name: name === undefined || isHidden(name) ? generated : name,
      role: role ?? (hasOwnCredential(step) ? undefined : creatorRole),
      // The service returns the expiry in seconds since 1970.
      expiresIn: validDays === -1 ? -1 : Math.floor((now.getTime() + validDays * DAY_MS) / 1000),
      ...{ createdAt, updatedAt: createdAt, createdBy: "", tenantId: estate.tenant },
    });
  },
  update({ apiKeys, now }, _step, before, after) {
    if (!apiKeys) return;
    const identity = identityOf(before.outputs);
    const key = existing(apiKeys, identity);
    const { name, role = key.role } = inputsOf(apiKey, after);
    apiKeys.set(identity, { ...key, role, name: name === undefined || isHidden(name) ? key.name : name });
    const time = now.toISOString();
    for (const old of previousOf(before)) if (old.until <= time) apiKeys.delete(old.identity);
  },
};

function workloadOf({ step }: PlannedStep, after: ResourceValues, id: string): Workload {
  const { name, issuer, audience, claims, role, ...session } = inputsOf(trustedWorkload, after);
  const { maxSessionMinutes = 60, singleUse = false } = session;
  return {
    ...{ id, name: isHidden(name) ? step.name : name },
    ...{ issuer, audience, claims, role, maxSessionMinutes, singleUse },
  };
}

/** Trusted workloads. A new resource adopts the workload with the same name. */
const workloadKind: Kind = {
  decisive: ["issuer", "audience", "claims", "role", "maxSessionMinutes", "singleUse"],
  idOf: ({ estate }, after) =>
    estate.trustedWorkloads?.find(({ name }) => name === inputsOf(trustedWorkload, after).name)?.id,
  isLive: ({ estate }, id) => estate.trustedWorkloads?.some((workload) => workload.id === id) ?? false,
  remove: (draft, _step, before) => draft.trustedWorkloads?.delete(outputOf(before, "workloadId")),
  createOrAdopt(draft, planned, after) {
    if (!draft.trustedWorkloads) return;
    const id = workloadKind.idOf?.(draft, after, planned) ?? newId(draft.trustedWorkloads, planned.step.name);
    draft.trustedWorkloads.set(id, workloadOf(planned, after, id));
  },
  update(draft, planned, before, after) {
    if (!draft.trustedWorkloads) return;
    const { id } = existing(draft.trustedWorkloads, outputOf(before, "workloadId"));
    draft.trustedWorkloads.set(id, workloadOf(planned, after, id));
  },
};

/**
 * Returns the current name of an API key in the state: the name on the service, or the name in the state if the key no
 * longer exists.
 */
export function apiKeyNameToday({ estate }: Draft, before: ResourceValues): string {
  const own = identityOf(before.outputs);
  return estate.apiKeys?.find((key) => apiKeyIdentity(key) === own)?.name ?? outputOf(before, "name");
}

/**
 * All kinds by name, in the order in which their steps are applied: tags and device names come first, since other
 * resources refer to them.
 */
export const kinds: ReadonlyMap<string, Kind> = new Map([
  // A Tag resource neither creates nor deletes an object. `renameTags` applies the updates of Tag resources.
  ["Tag", { decisive: ["name"] }],
  ["Device", deviceKind],
  ["DeviceTags", deviceTagsKind],
  ["DeviceTagAttachment", attachmentKind],
  // Public keys refer to members, and access policies to members and service accounts.
  ["Member", memberKind],
  ["PublicKey", keyKind],
  ["FirewallRule", ruleKind],
  ["ServiceAccount", accountKind],
  ["AccessPolicy", policyKind],
  // Install keys enroll devices. They have no effect on the access to accepted devices.
  ["InstallKey", { decisive: [] }],
  ["ApiKey", apiKeyKind],
  ["TrustedWorkload", workloadKind],
  // Each change of the access mode comes last: it needs the access policies.
  ["Namespace", namespaceKind],
]);
