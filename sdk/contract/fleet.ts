import { z } from "zod";
import { device, deviceName } from "./devices.ts";
import { defineOperation } from "./operation.ts";
import { model, uid } from "./schemas.ts";

const part = "Devices and agents";
const NO_NAMESPACE = "the user's token is not for a namespace";
const common = { part, auth: ["jwt", "apikey"], scope: "namespace", minRole: "observer" } as const;

export const resolveDevice = defineOperation({
  ...common,
  id: "resolveDevice",
  summary:
    "Get a device by uid or by name. The uid takes precedence. If several devices have the name, the " +
    "response is the accepted device",
  method: "GET",
  path: "/api/devices/resolve",
  object: "device",
  query: { uid: uid.optional(), hostname: deviceName.optional() },
  success: { body: device },
  errors: {
    400: "`uid` and `hostname` both missing, or one of them invalid",
    403: NO_NAMESPACE,
    404: "no match in the namespace",
  },
});

const count = z.int().min(0);

export const stats = model(
  "Stats",
  "The number of devices and the number of sessions of a namespace. Containers count as devices",
  z.object({
    registered_devices: count.describe("Number of accepted devices"),
    online_devices: count.describe("Number of accepted devices that are online"),
    pending_devices: count,
    rejected_devices: count,
    active_sessions: count,
  }),
);

export const getStats = defineOperation({
  ...common,
  id: "getStats",
  summary: "Get the number of devices and the number of sessions of the namespace",
  method: "GET",
  path: "/api/stats",
  success: { body: stats },
  errors: { 403: NO_NAMESPACE },
});
