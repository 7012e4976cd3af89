import { DeviceTagAttachment, getDevices } from "@gatehouse-access/provider";

// One more tag for each device that is there when the program runs; its other tags stay as they are.
export const audited = getDevices({ status: "accepted", name: "web-01" }).then((devices) =>
  devices.map(({ uid, name }) => new DeviceTagAttachment(`audited-${name}`, { device: uid, tag: "audited" })),
);
