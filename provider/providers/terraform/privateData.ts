import { randomBytes } from "node:crypto";
import { z } from "zod";

/**
 * The private data of a resource instance. Terraform stores the data with the state and passes it to the provider.
 * Terraform also passes the data of a replaced instance to the plan of its successor. Data that this version does not
 * recognize are ignored.
 */
export interface PrivateData {
  /** The declarer: the project, stack and resource that declared the object when this state was written. */
  readonly declarer?: string | undefined;
  /** The declaration that the object had when it was imported. Undefined for an object that this instance declared. */
  readonly importedFrom?: string | undefined;
  /** The id of the object. */
  readonly object?: string | undefined;
  /** A random id of the instance. Undefined in states that earlier versions wrote. */
  readonly instance?: string | undefined;
  /**
   * True if the instance adopted or inherited the object. The instance then writes its id as a mark into the
   * declarations of the object, so that the deletion of an earlier instance does not delete the object.
   */
  readonly isMarked?: boolean | undefined;
  /**
   * The ids of the instances from which this instance inherited the object, newest first. An id can be empty: see
   * {@link instanceIn}. After a killed run, the state may still contain these instances.
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

/** Parses private data. Returns an empty object for content that this version cannot parse. */
export function privateData(bytes: Uint8Array | undefined): PrivateData {
  if (!bytes?.length) return {};
  try {
    return schema.catch({}).parse(JSON.parse(Buffer.from(bytes).toString("utf8")));
  } catch {
    // If the content is not JSON, a different version wrote it.
    return {};
  }
}

/** Returns private data as bytes. */
export const privateBytes = (data: PrivateData): Uint8Array => Buffer.from(JSON.stringify(data));

/** Returns a new random id for an instance. */
export const newInstance = (): string => randomBytes(6).toString("hex");

/** Returns the id of an instance. Returns an empty string for an instance that an earlier version created. */
export const instanceIn = ({ instance = "" }: PrivateData): string => instance;
