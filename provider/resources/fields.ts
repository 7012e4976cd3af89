import { tenantId } from "@gatehouse-access/sdk/contract";
import { optional } from "./definition.ts";

/** The namespace an object lives in; every resource but Namespace has it. */
export const tenantInput = optional(tenantId, {
  description: "Namespace id. Left out: the namespace of the credential.",
  replaces: true,
});
