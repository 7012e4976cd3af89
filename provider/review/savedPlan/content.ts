import { z } from "zod";
import type { Shown } from "../../engine/index.ts";

const shown: z.ZodType<Shown> = z.json();
const fields = z.record(z.string(), shown);

const step = z.strictObject({
  op: z.enum(["create", "update", "replace", "delete", "import", "same"]),
  /** `PublicKey "ana"`, for sentences. */
  title: z.string(),
  /** What the program declares; null where the resource will be gone. */
  declared: fields.nullable(),
  /** Which object it is about, as far as there is one: its id, and the uid of a device that a selector means. */
  about: fields,
  /** The same fields as the state has them, after a refresh as they really are; null where there is none. */
  found: fields.nullable(),
});

const object = z.strictObject({
  title: z.string(),
  fields,
});

const namespace = z.strictObject({
  name: z.string(),
  /** What the credential might not read. */
  unread: z.array(z.string()),
  /** By kind and what never changes about them: keys, rules, members, API keys. */
  objects: z.record(z.string(), object),
  /** By uid. */
  devices: z.record(z.string(), object),
});

/** Everything that a later `up` must find as it was when a plan was reviewed. */
export const reviewedContent = z.strictObject({
  project: z.string(),
  stack: z.string(),
  /** Address of the service. */
  service: z.string(),
  /** The namespace of resources that name none. */
  home: z.string(),
  /** When it was reviewed, RFC 3339. */
  at: z.string(),
  /** Whether the real objects were read first. */
  refresh: z.boolean(),
  /** By urn; of what an earlier run left over, by urn and id. */
  steps: z.record(z.string(), step),
  /** By tenant: those of the plan that the credential may read. */
  namespaces: z.record(z.string(), namespace),
});

export type ReviewedContent = z.output<typeof reviewedContent>;
export type ReviewedStep = z.output<typeof step>;
export type ReviewedObject = z.output<typeof object>;
export type ReviewedFields = z.output<typeof fields>;
