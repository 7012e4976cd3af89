import { claimOfTag } from "../resources/deviceTagAttachment.ts";
import { definitionsByName } from "../resources/index.ts";
import { idWithin } from "../resources/values.ts";
import type { Values } from "../values.ts";
import { changeDevice, existingDevice, selectedDevice } from "./device.ts";
import type { Draft } from "./draft.ts";
import type { Kind } from "./kind.ts";
import { outputOf } from "./plannedStep.ts";

const definition = definitionsByName.DeviceTags;

/** All tags of a device. A device contains its tags, so the resource has no object of its own. */
export const deviceTags: Kind = {
  definition,
  keyOf: idWithin,
  reading: undefined,
  parts: undefined,
  watched: undefined,
  operations: {
    create: ["updateDeviceTags"],
    update: ["updateDeviceTags"],
    delete: ["deleteDeviceTag"],
  },
  plan: {
    stage: "objects",
    keyOf: (before) => outputOf(before, "uid"),
    newKey: selectedDevice,
    create: (draft, planned, inputs) => setTags(draft, selectedDevice(draft, planned), inputs),
    update: (draft, _planned, inputs, before) => setTags(draft, outputOf(before, "uid"), inputs),
    remove(draft, _planned, before, isClaimed) {
      const uid = outputOf(before, "uid");
      const tags = [before.outputs.tags].flat();
      const { tenant } = draft.live;
      removeTags(
        draft,
        uid,
        (tag) => tags.includes(tag) && !isClaimed(claimOfTag(`${tenant}/${uid}/${tag}`)),
      );
    },
  },
  decides: undefined,
  role: undefined,
  changes: undefined,
  linted: undefined,
  imported: { file: "devices", naming: "device" },
};

const setTags = (draft: Draft, uid: string, { tags }: Values) =>
  changeDevice(draft, existingDevice(draft, uid).uid, { tags: tags as string[] });

/** Removes tags from a device, if it exists. */
export function removeTags(draft: Draft, uid: string, isRemoved: (tag: string) => boolean): void {
  const device = draft.of(definitionsByName.Device)?.get(uid);
  if (device)
    changeDevice(draft, uid, { tags: existingDevice(draft, uid).tags.filter((tag) => !isRemoved(tag)) });
}
