import { z } from "zod";
import { defineOperation } from "./operation.ts";
import { model, tenantId } from "./schemas.ts";

export const support = model(
  "Support",
  "What a namespace tells the service's support who it is with",
  z.object({
    identifier: z.string().regex(/^[0-9a-f]{64}$/, "must be 64 lower-case hex characters"),
  }),
);

export const getNamespaceSupport = defineOperation({
  id: "getNamespaceSupport",
  part: "Namespaces and members",
  summary: "The identifier that proves a namespace to the service's support; it stays the same",
  method: "GET",
  path: "/api/namespaces/{tenant}/support",
  edition: "enterprise",
  auth: ["jwt", "apikey"],
  scope: "path",
  minRole: "observer",
  params: { tenant: tenantId },
  success: { body: support },
  errors: {
    402: "no active plan; unused, support is not tied to a plan here",
    403: "not a member, or the credential is for another namespace",
    404: "namespace unknown",
  },
});
