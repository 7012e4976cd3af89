import { z } from "zod";
import { defineOperation } from "./operation.ts";
import { model, tenantId } from "./schemas.ts";

export const support = model(
  "Support",
  "The identifier of a namespace for the service's support",
  z.object({
    identifier: z.string().regex(/^[0-9a-f]{64}$/, "must be 64 lower-case hex characters"),
  }),
);

export const getNamespaceSupport = defineOperation({
  id: "getNamespaceSupport",
  part: "Namespaces and members",
  summary:
    "Get the identifier that authenticates a namespace to the service's support. The identifier never changes",
  method: "GET",
  path: "/api/namespaces/{tenant}/support",
  edition: "enterprise",
  auth: ["jwt", "apikey"],
  scope: "path",
  minRole: "observer",
  params: { tenant: tenantId },
  success: { body: support },
  errors: {
    402: "no active plan; this service does not return this status, because its support requires no plan",
    403: "not a member, or the credential is for another namespace",
    404: "namespace unknown",
  },
});
