import { filter as filterSchema, tenantId } from "@gatehouse-access/sdk/contract";
import { mistakenFor, mistakenText, type Subject } from "@gatehouse-access/sdk/policy";
import { z } from "zod";
import { optional, required } from "./definition.ts";

/** The input for the namespace that an object is in. */
export const tenantInput = optional(tenantId, {
  description: "Namespace id. Default: the namespace of the stack, or of the provider block.",
  replaces: true,
});

/** A pattern that is no CIDR, no range of addresses and no glob: as regular expressions, these match something else. */
export const patternOn = (schema: z.ZodString, subject: Subject): z.ZodString =>
  schema.superRefine((text, context) => {
    const mistaken = mistakenFor(text, subject);
    if (mistaken) context.addIssue({ code: "custom", message: mistakenText(mistaken) });
  });

const notBeside = (other: string) => z.never().optional().describe(`Not beside ${other}.`);

/** The input for the devices that a key or rule is for. */
export const filterInput = required(
  z.union(
    [
      z.strictObject({
        hostname: patternOn(filterSchema.shape.hostname.unwrap(), "device").describe(
          "Pattern (RE2, not anchored) on the device's name.",
        ),
        tags: notBeside("hostname"),
      }),
      z.strictObject({
        tags: filterSchema.shape.tags.unwrap().describe("Tags of which a device has at least one; 1 to 3."),
        hostname: notBeside("tags"),
      }),
    ],
    { error: "must have exactly one of hostname and tags" },
  ),
  { description: "Which devices: by name or by tags, one of the two." },
);

/** A filter that the service sent, as a state holds it. */
export function filterState({
  hostname,
  tags,
}: {
  hostname?: string | undefined;
  tags?: string[] | undefined;
}) {
  // Newer servers send empty tags beside a pattern.
  return hostname || tags === undefined ? { hostname: hostname ?? "" } : { tags: [...tags].sort() };
}
