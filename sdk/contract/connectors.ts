import { isIP } from "node:net";
import { z } from "zod";
import { defineOperation } from "./operation.ts";
import { model, paging, revision, TOTAL_COUNT, tenantId } from "./schemas.ts";

const part = "Devices and agents";
const BELOW_ADMINISTRATOR = "caller's role is below administrator";
const UNKNOWN = "no such connector";
const INVALID = "a field is invalid, or secure without tls";

const common = { part, edition: "cloud", auth: ["jwt", "apikey"], scope: "namespace" } as const;

const connectorUid = z.uuid();

const ofConnector = {
  ...common,
  path: "/api/connector/{uid}",
  object: "connector",
  params: { uid: connectorUid },
} as const;

/** Longest certificate or key, in characters of PEM; room for a chain. */
const PEM_MAX = 16_384;

export const connector = model(
  "Connector",
  "A container engine whose containers are devices of the namespace",
  z.object({
    uid: connectorUid,
    tenant_id: tenantId,
    enable: z.boolean(),
    secure: z.boolean(),
    address: z.string(),
    port: z.int(),
    // The model also has tls "or absent": it is absent always, since nobody has to read a private key again.
    status: z.object({ state: z.enum(["connected", "disconnected"]), message: z.string() }),
    revision,
  }),
);

const LABEL = /^[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?$/;
const address = z
  .string()
  .min(1)
  .max(253)
  .refine(
    (text) => isIP(text) !== 0 || text.split(".").every((label) => LABEL.test(label)),
    "must be a host name or an IP address",
  )
  .describe("Host name or IP address of the engine");
const port = z.int().min(1).max(65_535);
const pem = z.string().min(1).max(PEM_MAX);
const tls = z
  .object({
    ca: pem.describe("Certificate of the authority that the engine's is from, PEM"),
    cert: pem.describe("The service's own certificate for the engine, PEM"),
    key: pem.describe("Its private key, PEM; never answered"),
  })
  .nullish()
  .describe("Required when secure; not kept otherwise");

export const connectorCreate = defineOperation({
  ...common,
  id: "connectorCreate",
  summary: "Store a connector; enabled unless it says otherwise, and not connected yet",
  method: "POST",
  path: "/api/connector",
  minRole: "administrator",
  body: z.object({ enable: z.boolean().optional(), secure: z.boolean().optional(), address, port, tls }),
  errors: { 400: INVALID, 403: `${BELOW_ADMINISTRATOR}, or the namespace has its maximum of connectors` },
});

export const connectorList = defineOperation({
  ...common,
  id: "connectorList",
  summary: "The namespace's connectors, the latest first",
  method: "GET",
  path: "/api/connector",
  minRole: "observer",
  query: {
    enable: z.enum(["true", "false"]).optional().describe("Only those that are enabled, or are not"),
    ...paging,
  },
  success: { headers: [TOTAL_COUNT], body: z.array(connector) },
});

export const connectorGet = defineOperation({
  ...ofConnector,
  id: "connectorGet",
  summary: "One connector",
  method: "GET",
  minRole: "observer",
  success: { body: connector },
  errors: { 404: UNKNOWN },
});

export const connectorUpdate = defineOperation({
  ...ofConnector,
  id: "connectorUpdate",
  summary: "Change what is sent of a connector",
  method: "PATCH",
  minRole: "administrator",
  body: z.object({
    enable: z.boolean().optional(),
    secure: z.boolean().optional(),
    address: address.optional(),
    port: port.optional(),
    tls,
  }),
  errors: { 400: INVALID, 403: BELOW_ADMINISTRATOR, 404: UNKNOWN },
  repeatable: true,
});

export const connectorDelete = defineOperation({
  ...ofConnector,
  id: "connectorDelete",
  summary: "Remove a connector",
  method: "DELETE",
  minRole: "administrator",
  errors: { 403: BELOW_ADMINISTRATOR, 404: UNKNOWN },
});

export const connectorInfo = defineOperation({
  ...common,
  id: "connectorInfo",
  summary: "What the engine of a connector says of itself; 500 while the connector is not connected to it",
  method: "GET",
  path: "/api/connector/{uid}/info",
  minRole: "observer",
  params: { uid: connectorUid },
  success: { body: z.record(z.string(), z.unknown()) },
  errors: { 404: UNKNOWN, 500: "internal error, or the connector is not connected to its engine" },
});
