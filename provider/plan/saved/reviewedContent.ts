import { z } from "zod";
import type { Shown } from "../../engine/index.ts";

const shown: z.ZodType<Shown> = z.json();
const fields = z.record(z.string(), shown);

const step = z.strictObject({
  op: z.enum(["create", "update", "replace", "delete", "import", "same"]),
  /** `PublicKey "ana"`, for sentences. */
  title: z.string(),
  /** What the program declares; null for a resource that the program has not. */
  declared: fields.nullable(),
  /** Which object it is about: its id where it has one, and the uid of the device that a selector means. */
  about: fields,
  /** The same fields as the state has them, after a refresh as they really are; null where the state has none. */
  found: fields.nullable(),
});

const object = z.strictObject({
  title: z.string(),
  fields,
});

const namespace = z.strictObject({
  name: z.string(),
  /** Lists that the credential may not read. */
  unread: z.array(z.string()),
  /** Keys, rules, members and API keys, by their kind and an id that never changes. */
  objects: z.record(z.string(), object),
  /** By uid. */
  devices: z.record(z.string(), object),
});

/** Everything that a later `up --plan` must find as it was when the plan was reviewed. */
export const reviewedContent = z.strictObject({
  project: z.string(),
  stack: z.string(),
  /** Address of the service. */
  service: z.string(),
  /** The namespace of resources that name none; left out where each names one. */
  home: z.string().optional(),
  /** When it was reviewed, RFC 3339. */
  at: z.string(),
  /** Whether the real objects were read first. */
  refresh: z.boolean(),
  /** By urn; an old object that an earlier replacement left over by urn and id. */
  steps: z.record(z.string(), step),
  /** By tenant: the namespaces that the plan is about and the credential may read. */
  namespaces: z.record(z.string(), namespace),
});

/** What {@link reviewedContent} reads. */
export type ReviewedContent = z.output<typeof reviewedContent>;
/** What becomes of one resource. */
export type ReviewedStep = z.output<typeof step>;
/** An object on the service. */
export type ReviewedObject = z.output<typeof object>;
/** Values by their names. */
export type ReviewedFields = z.output<typeof fields>;
