import { z } from "zod";
import { declaration, defineOperation } from "./operation.ts";
import { dateTime, model, paging, TOTAL_COUNT, tenantId } from "./schemas.ts";

const part = "Audit trail";

export const auditEntry = model(
  "AuditEntry",
  "A change to an object, and the actor of the change",
  z.object({
    id: z.int().describe("Id of the entry. Later entries have higher ids"),
    at: dateTime,
    actor: z.object({
      kind: z.enum(["user", "apikey", "device", "workload", "operator"]),
      id: z
        .string()
        .describe(
          "Id of the actor: user id, name of the API key, device uid or workload id; empty for an operator of the service",
        ),
      name: z.string().describe("Name of the actor at the time of the change"),
    }),
    address: z.string().describe("Address of the client; empty for an operator of the service"),
    request_id: z
      .string()
      .describe("`X-Request-ID` of the response. The service's log contains the same value"),
    operation: z.string(),
    object: z.object({ kind: z.string(), id: z.string() }),
    before: z.unknown().describe("Declared fields before the change; null if the object was created"),
    after: z.unknown().describe("Declared fields after the change; null if the object was deleted"),
    declared_by: declaration
      .optional()
      .describe(
        "Program resource that declares the object, according to the request. The value is a hint: any " +
          "client with write access can forge it",
      ),
  }),
);

export const getAuditTrail = defineOperation({
  id: "getAuditTrail",
  part,
  summary: "List the changes in the namespace, latest first",
  method: "GET",
  path: "/api/namespaces/{tenant}/audit",
  auth: ["jwt", "apikey"],
  scope: "path",
  minRole: "administrator",
  params: { tenant: tenantId },
  query: {
    ...paging,
    since: dateTime.optional().describe("Only changes at or after this time"),
    until: dateTime.optional().describe("Only changes before this time"),
    kind: z
      .string()
      .max(64)
      .optional()
      .describe("Only changes to objects of this kind: `device`, `publicKey`, …"),
    object: z.string().max(255).optional().describe("Only changes to the object with this id"),
  },
  success: { headers: [TOTAL_COUNT], body: z.array(auditEntry) },
  errors: {
    400: "a time is not in RFC 3339 format in UTC",
    403: "role below `administrator`, or the credential is for another namespace",
    404: "namespace unknown",
  },
});
