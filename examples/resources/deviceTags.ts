import { DeviceTags } from "@gatehouse-access/provider";
import { edge } from "./tag";

// All tags of these devices. Other tags are removed.
export const gateways = ["edge-01", "edge-02"].map(
  (device) => new DeviceTags(device, { device, tags: [edge.name, "gateway"] }),
);
