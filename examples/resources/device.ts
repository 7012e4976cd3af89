import { Device } from "@gatehouse-access/provider";

// The MAC address selects the device, because this resource changes the device's name.
export const gate = new Device("gate", {
  device: "02:00:00:00:0a:01",
  name: "gate",
  status: "accepted",
});
