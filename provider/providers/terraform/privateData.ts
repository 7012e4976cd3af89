import { randomBytes } from "node:crypto";
import { z } from "zod";

/**
 * The private data of a resource instance, which Terraform stores with the state and passes to the provider. Terraform
 * also passes the data of a replaced instance to the plan of its successor. Data of other versions and unknown content
 * are ignored.
 */
export interface PrivateData {
  /** The project, stack and resource that declared the object when this state was written. */
  readonly declarer?: string | undefined;
  /** The declaration of the object when it was imported. Undefined for an object that this instance declared. */
  readonly importedFrom?: string | undefined;
  /** The id of the object. */
  readonly object?: string | undefined;
  /** A random id of the instance. States of earlier versions have none. */
  readonly instance?: string | undefined;
  /**
   * True if the instance adopted the object or inherited it. Its declarations then contain the id of the instance, so
   * that the deletion of an earlier instance leaves the object.
   */
  readonly isMarked?: boolean | undefined;
  /**
   * The instances whose object this instance inherited, newest first. See {@link instanceIn}. A killed run may have
   * left these instances in the state.
   */
  readonly inheritedFrom?: readonly string[] | undefined;
}

const text = z.string().optional().catch(undefined);
const schema = z.object({
  declarer: text,
  importedFrom: text,
  object: text,
  instance: text,
  isMarked: z.boolean().optional().catch(undefined),
  inheritedFrom: z.array(z.string()).optional().catch(undefined),
});

/** Parses private data. Content that this version does not know has no facts. */
export function privateData(bytes: Uint8Array | undefined): PrivateData {
  if (!bytes?.length) return {};
  try {
    return schema.catch({}).parse(JSON.parse(Buffer.from(bytes).toString("utf8")));
  } catch {
    // Content that is not JSON was written by another version.
    return {};
  }
}

/** Returns private data as bytes. */
export const privateBytes = (data: PrivateData): Uint8Array => Buffer.from(JSON.stringify(data));

/** Returns a new id of an instance. */
export const newInstance = (): string => randomBytes(6).toString("hex");

/** Returns the id of an instance; an empty text for an instance of an earlier version. */
export const instanceIn = ({ instance = "" }: PrivateData): string => instance;
