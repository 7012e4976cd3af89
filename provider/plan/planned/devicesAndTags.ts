import type { DeviceFilter } from "@gatehouse-access/sdk/policy";
import type { ResourceValues } from "../../engine/index.ts";
import { device } from "../../resources/device.ts";
import { claimOfTag, deviceTagAttachment } from "../../resources/deviceTagAttachment.ts";
import { deviceTags } from "../../resources/deviceTags.ts";
import { tag } from "../../resources/tag.ts";
import { macOf } from "../../service/listings.ts";
import type { PlannedStep } from "../steps.ts";
import { CannotTell, type Draft, inputsOf, type Kind, outputOf } from "./draft.ts";

const isLiveDevice = ({ estate }: Draft, id: string) =>
  estate.devices.some(({ uid }) => uid === id.split("/")[0]);

/**
 * The uid of the device that a resource has today.
 * @throws CannotTell where it is gone
 */
function deviceOf(draft: Draft, before: ResourceValues): string {
  return draft.device(outputOf(before, "uid")).uid;
}

function settle(draft: Draft, uid: string, after: ResourceValues): void {
  const { name, status } = inputsOf(device, after);
  if (name !== undefined) draft.changeDevice(uid, { name });
  const { status: today } = draft.device(uid);
  if (status === "accepted" && today !== "accepted") accept(draft, uid);
  if (status === "rejected" && today === "accepted")
    throw new CannotTell("it rejects a device that is accepted, which the service refuses");
  if (status === "rejected") draft.changeDevice(uid, { status });
}

/** A machine that enrolled with a new key takes the name and the place of its former self (rules section 7). */
function accept(draft: Draft, uid: string): void {
  const mac = macOf(draft.device(uid));
  const former = [...draft.devices.values()].find(
    (other) => mac !== "" && other.uid !== uid && other.status === "accepted" && macOf(other) === mac,
  );
  if (former) draft.removeDevice(former.uid);
  draft.changeDevice(uid, { status: "accepted", ...(former && { name: former.name }) });
}

/** A device's name and status. Devices enrol by themselves. */
export const deviceKind: Kind = {
  decisive: ["device", "name", "status"],
  idOf: (draft, _step, after) => draft.uidOf(inputsOf(device, after).device),
  isLive: isLiveDevice,
  remove(draft, _step, before) {
    if (before.outputs.onDestroy === "remove") draft.removeDevice(outputOf(before, "uid"));
  },
  bring: (draft, _step, after) => settle(draft, draft.uidOf(inputsOf(device, after).device), after),
  change: (draft, _step, before, after) => settle(draft, deviceOf(draft, before), after),
};

const setTags = (draft: Draft, uid: string, after: ResourceValues) =>
  draft.changeDevice(draft.device(uid).uid, { tags: [...inputsOf(deviceTags, after).tags] });

const without = (draft: Draft, uid: string, gone: (tag: string) => boolean) =>
  draft.changeDevice(uid, { tags: draft.devices.get(uid)?.tags.filter((tag) => !gone(tag)) ?? [] });

/** All tags of a device together. */
export const deviceTagsKind: Kind = {
  decisive: ["device", "tags"],
  idOf: (draft, _step, after) => draft.uidOf(inputsOf(deviceTags, after).device),
  isLive: isLiveDevice,
  remove(draft, _step, before, isClaimed) {
    const uid = outputOf(before, "uid");
    const tenant = draft.estate.tenant;
    const tags = [before.outputs.tags].flat();
    without(draft, uid, (tag) => tags.includes(tag) && !isClaimed(claimOfTag(`${tenant}/${uid}/${tag}`)));
  },
  bring: (draft, _step, after) => setTags(draft, draft.uidOf(inputsOf(deviceTags, after).device), after),
  change: (draft, _step, before, after) => setTags(draft, deviceOf(draft, before), after),
};

/** One tag of a device beside its others. */
export const attachmentKind: Kind = {
  decisive: ["device", "tag"],
  idOf(draft, _step, after) {
    const { device, tag } = inputsOf(deviceTagAttachment, after);
    return `${draft.uidOf(device)}/${tag}`;
  },
  isLive(draft, id) {
    const [uid, tag = ""] = id.split("/");
    return draft.estate.devices.some((device) => device.uid === uid && device.tags.includes(tag));
  },
  remove(draft, { step }) {
    const [, uid = "", tag = ""] = step.id?.split("/") ?? [];
    without(draft, uid, (other) => other === tag);
  },
  bring(draft, _step, after) {
    const { device, tag } = inputsOf(deviceTagAttachment, after);
    const { uid, tags } = draft.device(draft.uidOf(device));
    if (!tags.includes(tag)) draft.changeDevice(uid, { tags: [...tags, tag] });
  },
  // Only another selector of the same device comes here, since a change of any other input is a replacement.
  change() {},
};

/** Declaring a tag makes nothing, and no longer declaring it removes nothing. See {@link renameTags} for renames. */
export const tagKind: Kind = {
  decisive: ["name"],
  idOf: () => undefined,
  isLive: () => false,
  remove() {},
  bring() {},
  change() {},
};

/**
 * Renames tags on every device, key and rule. All are renamed at once, since a name may pass from one tag to another.
 * @param renames steps that change a Tag
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
  for (const map of [draft.keys, draft.rules] as Map<string, { filter: DeviceFilter }>[]) {
    for (const [id, object] of map) map.set(id, { ...object, filter: filtered(object.filter) });
  }
}
