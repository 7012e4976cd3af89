import { isIP } from "node:net";
import { z } from "zod";
import { defineOperation } from "./operation.ts";
import { model, paging, revision, TOTAL_COUNT, tenantId } from "./schemas.ts";

const part = "Devices and agents";
const BELOW_ADMINISTRATOR = "caller's role is below `administrator`";
const UNKNOWN = "no such connector";
const INVALID = "a field is invalid, or `secure` is true and `tls` is missing";

const common = { part, edition: "cloud", auth: ["jwt", "apikey"], scope: "namespace" } as const;

const connectorUid = z.uuid();

const ofConnector = {
  ...common,
  path: "/api/connector/{uid}",
  object: "connector",
  params: { uid: connectorUid },
} as const;

/**
 * Maximum length of a certificate or key in PEM format, in characters. Certificate chains are shorter than this limit.
 */
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
    // In the specification, the model also has an optional field `tls`. This service never returns that field, because
    // it contains a private key and no client needs to read the key.
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
    ca: pem.describe("Certificate of the authority that issued the engine's certificate, PEM"),
    cert: pem.describe("Client certificate of the service for the engine, PEM"),
    key: pem.describe("Private key of the client certificate, PEM; never returned"),
  })
  .nullish()
  .describe(
    "Certificates of the connection. Required if `secure` is true. If `secure` is not true, the service does not store the certificates",
  );

export const connectorCreate = defineOperation({
  ...common,
  id: "connectorCreate",
  summary:
    "Create a connector. A new connector is enabled by default, and is not connected to its engine yet",
  method: "POST",
  path: "/api/connector",
  minRole: "administrator",
  body: z.object({ enable: z.boolean().optional(), secure: z.boolean().optional(), address, port, tls }),
  errors: {
    400: INVALID,
    403: `${BELOW_ADMINISTRATOR}, or the namespace has reached its maximum number of connectors`,
  },
});

export const connectorList = defineOperation({
  ...common,
  id: "connectorList",
  summary: "List the namespace's connectors, latest first",
  method: "GET",
  path: "/api/connector",
  minRole: "observer",
  query: {
    enable: z
      .enum(["true", "false"])
      .optional()
      .describe("`true`: only enabled connectors; `false`: only disabled connectors"),
    ...paging,
  },
  success: { headers: [TOTAL_COUNT], body: z.array(connector) },
});

export const connectorGet = defineOperation({
  ...ofConnector,
  id: "connectorGet",
  summary: "Get a connector",
  method: "GET",
  minRole: "observer",
  success: { body: connector },
  errors: { 404: UNKNOWN },
});

export const connectorUpdate = defineOperation({
  ...ofConnector,
  id: "connectorUpdate",
  summary: "Change fields of a connector. Omitted fields do not change",
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
  summary: "Delete a connector",
  method: "DELETE",
  minRole: "administrator",
  errors: { 403: BELOW_ADMINISTRATOR, 404: UNKNOWN },
});

export const connectorInfo = defineOperation({
  ...common,
  id: "connectorInfo",
  summary:
    "Get information from the container engine. Returns 500 while the connector is not " +
    "connected to the engine",
  method: "GET",
  path: "/api/connector/{uid}/info",
  minRole: "observer",
  params: { uid: connectorUid },
  success: { body: z.record(z.string(), z.unknown()) },
  errors: { 404: UNKNOWN, 500: "internal error, or the connector is not connected to its engine" },
});
