import { Device } from "@gatehouse-access/provider";

// By MAC address, since the name is what it changes.
export const gate = new Device("gate", {
  device: "02:00:00:00:0a:01",
  name: "gate",
  status: "accepted",
});
