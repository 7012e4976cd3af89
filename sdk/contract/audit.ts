import { z } from "zod";
import { declaration, defineOperation } from "./operation.ts";
import { dateTime, model, paging, TOTAL_COUNT, tenantId } from "./schemas.ts";

const part = "Audit trail";

export const auditEntry = model(
  "AuditEntry",
  "Who changed what",
  z.object({
    id: z.int().describe("Grows with time"),
    at: dateTime,
    actor: z.object({
      kind: z.enum(["user", "apikey", "device", "operator"]),
      id: z
        .string()
        .describe("User id, name of the API key, device uid; empty for an operator of the service"),
      name: z.string().describe("As it was then"),
    }),
    address: z.string().describe("Where the request came from; empty for an operator of the service"),
    request_id: z.string().describe("X-Request-ID of the answer, which is in the service's log too"),
    operation: z.string(),
    object: z.object({ kind: z.string(), id: z.string() }),
    before: z.unknown().describe("What was declared of the object; null where it was made"),
    after: z.unknown().describe("What is; null where it was deleted"),
    declared_by: declaration
      .optional()
      .describe("The resource of a program that the request said it is of: a hint that any writer can forge"),
  }),
);

export const getAuditTrail = defineOperation({
  id: "getAuditTrail",
  part,
  summary: "Who changed what in the namespace, the latest first",
  method: "GET",
  path: "/api/namespaces/{tenant}/audit",
  auth: ["jwt", "apikey"],
  scope: "path",
  minRole: "administrator",
  params: { tenant: tenantId },
  query: {
    ...paging,
    since: dateTime.optional().describe("Not before this time"),
    until: dateTime.optional().describe("Before this time"),
    kind: z.string().max(64).optional().describe("Of this kind of object: device, publicKey, …"),
    object: z.string().max(255).optional().describe("Of the object with this id"),
  },
  success: { headers: [TOTAL_COUNT], body: z.array(auditEntry) },
  errors: {
    400: "a time not RFC 3339 in UTC",
    403: "role below administrator, or the credential is for another namespace",
    404: "namespace unknown",
  },
});
