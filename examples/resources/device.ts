import { Device } from "@gatehouse-access/provider";

// The device is selected by its MAC address, because the resource changes the name.
export const gate = new Device("gate", {
  device: "02:00:00:00:0a:01",
  name: "gate",
  status: "accepted",
});
