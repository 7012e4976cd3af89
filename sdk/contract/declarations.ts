import { z } from "zod";
import { declaration, declaredBy, declaredByText, defineOperation, type ObjectKind } from "./operation.ts";
import { tenantId } from "./schemas.ts";

/**
 * The kinds of objects that can have a declaration. A declaration identifies the program resource that declares the
 * object. A tag cannot have a declaration, because the database has no row for a tag.
 */
export const CLAIMED_KINDS = [
  "namespace",
  "member",
  "device",
  "deviceTags",
  "publicKey",
  "firewallRule",
  "apiKey",
  "trustedWorkload",
] as const satisfies readonly ObjectKind[];

/** A kind of object that can have a declaration. */
export type ClaimedKind = (typeof CLAIMED_KINDS)[number];

const claim = declaration
  .strict()
  .refine((value) => declaredByText(value) !== undefined, {
    error:
      "must have parts that are not empty and contain no control characters, with at most 1024 bytes in total",
  })
  .describe("The program resource that declares the object from now on");

export const claimObject = defineOperation({
  id: "claimObject",
  part: "Declarations",
  summary:
    "Store the program resource that declares an object, without changing the object. The caller needs the" +
    " permission to change the object. The audit trail contains no entry, because no declared field changes",
  method: "PUT",
  path: "/api/namespaces/{tenant}/declarations/{kind}/{id}",
  auth: ["jwt", "apikey"],
  scope: "path",
  minRole: "operator",
  params: {
    tenant: tenantId,
    kind: z.enum(CLAIMED_KINDS).describe("Kind of the object"),
    id: z
      .string()
      .min(1)
      .max(255)
      .describe(
        "Id of the object: tenant id, user id, device uid, fingerprint, rule id, name of the API key, or workload id",
      ),
  },
  body: claim,
  success: { body: z.object({ declared_by: declaredBy.unwrap() }) },
  errors: {
    400: "the kind, the id or the declaration is invalid",
    403: "the caller may not change the object",
    404: "no such object in the namespace",
  },
});
