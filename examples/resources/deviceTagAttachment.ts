import { DeviceTagAttachment, getDevices } from "@gatehouse-access/provider";

// Adds a tag to each device that exists when the program runs. The devices keep their other tags.
export const audited = getDevices({ status: "accepted", name: "web-01" }).then((devices) =>
  devices.map(({ uid, name }) => new DeviceTagAttachment(`audited-${name}`, { device: uid, tag: "audited" })),
);
