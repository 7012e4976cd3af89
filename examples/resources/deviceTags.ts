import { DeviceTags } from "@gatehouse-access/provider";
import { edge } from "./tag";

// All tags of these devices: any other one is taken away.
export const gateways = ["edge-01", "edge-02"].map(
  (device) => new DeviceTags(device, { device, tags: [edge.name, "gateway"] }),
);
