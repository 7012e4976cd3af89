import { DAY } from "@gatehouse-access/sdk/times";
import { changeList } from "../../model/changes.ts";
import type { Draft } from "../../model/draft.ts";
import { type Kind, listedBy, type PlannedChange } from "../../model/kind.ts";
import type { NamespaceObjects } from "../../model/namespaceObjects.ts";
import { outputOf, type PlannedStep } from "../../model/plannedStep.ts";
import { hasEnded, NEVER } from "../../model/validity.ts";
import { canonical, idWithin } from "../../model/values.ts";
import { PLAIN, type Style } from "../../style.ts";
import type { Values } from "../../values.ts";
import { byTexts } from "../../words.ts";
import { definition } from "./resource.ts";

export const installKey: Kind = {
  definition,
  keyOf: idWithin,
  reading: listedBy(definition, {
    what: "install keys",
    missed: "unmanaged install keys cannot be detected",
  }),
  parts: undefined,
  watched: { privilege },
  // The service cannot delete an install key, so a deletion revokes the key.
  operations: {
    create: ["createInstallKey"],
    update: ["updateInstallKey"],
    delete: ["updateInstallKey"],
  },
  plan: {
    stage: "objects",
    keyOf: (before) => outputOf(before, "installKeyId"),
    captured: ({ state: { expiresAt } }) => ({ expiresAt }),
    newKey: adopted,
    values: (draft, change) => ({ installKeyId: change.key, ...validity(draft, change) }),
  },
  quota: undefined,
  decides: undefined,
  role: undefined,
  changes: changeList<OtherPrivilege>({
    list: "privileges",
    title: "Other privileges",
    what: "other privilege change",
    between: changesBetween,
    sentence: privilegeSentence,
    marks: ({ change }) => change,
    gains: (change) => (change.change === "lost" ? [] : [privilegeSentence(change, PLAIN)]),
  }),
  linted: undefined,
  imported: { file: "installKeys", naming: "name" },
};

/**
 * Returns the validity of a new or changed key. The service does not return the number of days, so the list of keys
 * computes it from the expiry time. A key keeps its expiry time, with two exceptions: the program changes the validity,
 * or the key has expired.
 */
function validity({ now }: Draft, { planned, inputs: { validDays }, object }: PlannedChange): Values {
  const { validDays: field } = definition.inputs;
  const declared = planned.before ? planned.before.inputs.validDays : object?.state.validDays;
  const isUnchanged = field !== undefined && validDays === canonical(field, declared);
  const isSame = object && isUnchanged && !hasEnded(String(object.state.expiresAt), now);
  if (isSame) return { validDays: object.state.validDays, expiresAt: object.state.expiresAt };
  const end = new Date(now.getTime() + Number(validDays) * DAY);
  return { expiresAt: validDays === NEVER ? "" : end.toISOString() };
}

/**
 * Returns the key of the live install key that a new resource adopts: the install key with the same name. Returns
 * undefined if the resource adopts no install key.
 */
function adopted({ live }: Draft, { after }: PlannedStep, { name }: Values): string | undefined {
  if (!after?.inputs.adopt || name === undefined) return undefined;
  return [...(live.of(definition) ?? [])].find(([, { state }]) => state.name === name)?.[0];
}

/** The inputs that determine which devices can enroll, and how they enroll. The input `mode` is not included. */
const ENROLLING = [
  "tags",
  "allowedMacs",
  "webhookUrl",
  "webhookTimeout",
  "webhookCallbackTtl",
  "validDays",
  "usageLimit",
  "ephemeral",
  "ephemeralTimeout",
] as const;

/**
 * Returns the privilege that an install key gives: the enrollment of devices. Returns undefined if the install key is
 * disabled, expired or used up.
 */
function privilege(state: Values): string | undefined {
  const limit = Number(state.usageLimit ?? 0);
  const isUsedUp = limit > 0 && Number(state.usedTimes ?? 0) >= limit;
  if (state.disabled === true || isUsedUp || hasEnded(String(state.expiresAt), new Date())) return undefined;
  const limits = ENROLLING.flatMap((name) => {
    const field = definition.inputs[name];
    const value = field ? canonical(field, state[name]) : state[name];
    const isDefault = JSON.stringify(value) === JSON.stringify(field?.default);
    return isDefault ? [] : [`, ${name} ${[value].flat().join(" ")}`];
  });
  return `enrolls devices in the namespace (mode ${state.mode}${limits.join("")})`;
}

/** A change to a privilege other than logins and roles. For example, an object no longer enrolls devices. */
export interface OtherPrivilege {
  readonly change: "gained" | "lost" | "altered";
  readonly kind: string;
  /** Name of the object. */
  readonly resource: string;
  /**
   * The privilege as a sentence without its subject: `enrolls devices in the namespace`. This is the privilege after
   * the change, or the privilege before the change if the privilege is lost.
   */
  readonly privilege: string;
}

function changesBetween(before: NamespaceObjects, after: NamespaceObjects): OtherPrivilege[] {
  const [was, is] = [before.of(definition), after.of(definition)];
  const changes = [...new Map([...(was ?? []), ...(is ?? [])])].flatMap(([key, object]): OtherPrivilege[] => {
    const [old, now] = [was?.get(key), is?.get(key)].map((one) => one && privilege(one.state));
    const given = { kind: definition.name, resource: object.name };
    // If the validity is renewed for the same number of days, the privilege stays the same, and only the expiry time
    // changes.
    const isSame = now === old && was?.get(key)?.state.expiresAt === is?.get(key)?.state.expiresAt;
    if (now !== undefined && !isSame)
      return [{ change: old === undefined ? "gained" : "altered", ...given, privilege: now }];
    return old === undefined || now !== undefined ? [] : [{ change: "lost", ...given, privilege: old }];
  });
  return changes.sort(byTexts(({ resource }) => resource));
}

/**
 * Returns a sentence about a changed privilege other than logins and roles: `InstallKey floor enrolls devices in the
 * namespace`.
 */
function privilegeSentence({ change, kind, resource, privilege }: OtherPrivilege, style: Style): string {
  return `${kind} ${style.name(resource)} ${change === "lost" ? "no longer " : ""}${style.text(privilege)}`;
}
