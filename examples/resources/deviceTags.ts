import { DeviceTags } from "@gatehouse-access/provider";
import { edge } from "./tag";

// Sets all tags of these devices, and removes all other tags.
export const gateways = ["edge-01", "edge-02"].map(
  (device) => new DeviceTags(device, { device, tags: [edge.name, "gateway"] }),
);
