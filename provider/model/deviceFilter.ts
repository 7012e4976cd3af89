import { filter as filterSchema, tagsUpTo } from "@gatehouse-access/sdk/contract";
import type { FieldPath } from "@gatehouse-access/sdk/errors";
import { mistakenFor, mistakenText, type Subject } from "@gatehouse-access/sdk/policy";
import { z } from "zod";
import type { Need } from "./definition.ts";
import { required } from "./fields.ts";

/**
 * Returns a schema that rejects CIDR ranges, address ranges and globs. The service would interpret them as regular
 * expressions, which do not match the same strings.
 */
export const patternOn = (schema: z.ZodString, subject: Subject): z.ZodString =>
  schema.superRefine((text, context) => {
    const mistaken = mistakenFor(text, subject);
    if (mistaken) context.addIssue({ code: "custom", message: mistakenText(mistaken) });
  });

/** Returns the schema of a property that must not be set together with the property `other`. */
export const notWith = (other: string) =>
  z.never().optional().describe(`Cannot be combined with \`${other}\`.`);

/** The maximum number of tags of a device or filter. Servers before 0.21 allow at most three tags. */
const TAGS_MAX = 64;

/** Different tags, in any order. */
export const tagsSchema = tagsUpTo(TAGS_MAX);

/** Returns the capability that a list of tags needs. */
export const needsOfTags = (tags: readonly string[] | undefined, field: FieldPath): readonly Need[] =>
  // An unknown list is a placeholder string instead of an array.
  Array.isArray(tags) && tags.length > 3 ? [{ capability: "more than three tags", field }] : [];

/** The input that selects the devices of a key or rule. */
export const filterInput = required(
  z.union(
    [
      z.strictObject({
        hostname: patternOn(filterSchema.shape.hostname.unwrap(), "device").describe(
          "An RE2 pattern that matches the device name. The pattern is not anchored: `web` also matches `web-01`. Must not be set together with `tags`.",
        ),
        tags: notWith("hostname"),
      }),
      z.strictObject({
        tags: tagsSchema.describe(
          "The tags to match. A device matches if it has at least one of these tags. Must contain 1 to 3 tags, or up to 64 tags on servers of version 0.21 or later. Must not be set together with `hostname`.",
        ),
        hostname: notWith("tags"),
      }),
    ],
    { error: "must have exactly one of hostname and tags" },
  ),
  { description: "The devices to match. Must contain exactly one of `hostname` and `tags`." },
);

/** Converts a filter from the service's form to the form that states use. */
export function filterState({
  hostname,
  tags,
}: {
  hostname?: string | undefined;
  tags?: readonly string[] | undefined;
}) {
  // For a filter with a pattern, newer servers also return an empty list of tags.
  return hostname || tags === undefined ? { hostname: hostname ?? "" } : { tags: [...tags].sort() };
}
