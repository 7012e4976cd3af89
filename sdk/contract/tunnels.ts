import { z } from "zod";
import { defineOperation } from "./operation.ts";
import { dateTime, model, paging, revision, TOTAL_COUNT, tenantId, uid, ZERO_DATE } from "./schemas.ts";

const part = "Devices and agents";
const BELOW_ADMINISTRATOR = "caller's role is below `administrator`";
const UNKNOWN_DEVICE = "no such device in the namespace";

const common = { part, edition: "enterprise", auth: ["jwt", "apikey"], scope: "namespace" } as const;

/** Maximum lifetime of a tunnel that expires, in seconds (models section 10). */
export const TUNNEL_TTL_MAX = 9_223_372_036;

/** Address of a tunnel: 128 random bits in hexadecimal. The address is one label of the tunnel's host name. */
export const tunnelAddress = z.string().regex(/^[0-9a-f]{32}$/, "must be 32 lower-case hex characters");
const port = z.int().min(1).max(65_535);

export const tunnel = model(
  "Tunnel",
  "A public address that forwards to a port that the device can reach",
  z.object({
    address: tunnelAddress,
    full_address: z
      .string()
      .describe("Public host name of the tunnel: its address in the service's domain for tunnels"),
    namespace: tenantId,
    device: uid,
    host: z.string().describe("IP address in the network of the device"),
    port,
    ttl: z.int().describe("Lifetime in seconds; -1: until the tunnel is deleted"),
    expires_in: z.union([dateTime, z.literal(ZERO_DATE)]).describe("Expiry of the tunnel"),
    created_at: dateTime,
    revision,
  }),
);

export const listTunnels = defineOperation({
  ...common,
  id: "listTunnels",
  summary: "List the tunnels of a device that have not expired, latest first",
  method: "GET",
  path: "/api/devices/{uid}/tunnels",
  minRole: "observer",
  params: { uid },
  query: paging,
  success: { headers: [TOTAL_COUNT], body: z.array(tunnel) },
  errors: { 404: UNKNOWN_DEVICE },
});

export const createTunnel = defineOperation({
  ...common,
  id: "createTunnel",
  summary: "Create a public address for a port that the device can reach",
  method: "POST",
  path: "/api/devices/{uid}/tunnels",
  object: "tunnel",
  creates: true,
  minRole: "administrator",
  params: { uid },
  body: z.object({
    host: z.union([z.ipv4(), z.ipv6()]).describe("IP address in the network of the device"),
    port,
    ttl: z
      .union([z.int().min(1).max(TUNNEL_TTL_MAX), z.literal(-1)])
      .describe("Lifetime in seconds; -1: until the tunnel is deleted"),
  }),
  idempotencyKey: true,
  success: { body: tunnel },
  errors: {
    400: "`host`, `port` or `ttl` invalid",
    403: "role below `administrator`, or the device has reached its maximum number of tunnels",
    404: UNKNOWN_DEVICE,
  },
});

export const deleteTunnel = defineOperation({
  ...common,
  id: "deleteTunnel",
  summary: "Delete a tunnel",
  method: "DELETE",
  path: "/api/devices/{uid}/tunnels/{address}",
  object: "tunnel",
  minRole: "administrator",
  params: { uid, address: tunnelAddress },
  errors: { 403: BELOW_ADMINISTRATOR, 404: "no such tunnel on that device" },
});
