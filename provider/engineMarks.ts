import type { Values } from "./values.ts";
// Special keys, signatures and strings that providers and Pulumi engines exchange in property values and messages. They
// mark, for example, secrets and unknown values. Pulumi's engines define the signatures. This package defines the other
// keys and the messages. Engines store the keys in state files, so the keys must not change.

/**
 * The key of an object's signature. The signature marks the object as a secret, a reference, an asset, an archive or an
 * output.
 */
export const SIGNATURE = "4dabf18193072939515e22adb298388d";
/** Signature of a secret. */
export const SECRET = "1b47061264138c4ac30d75fd1eb44270";
/** Signature of a reference to a resource. */
export const RESOURCE = "5cf8f73096256a8f31e491e813e4eb8e";
/** Signature of an asset. */
export const ASSET = "c44067f5952c0a294b673a41bacd8c17";
/** Signature of an archive. */
export const ARCHIVE = "0def7320c3a5731c473e5ecbe6d01bc7";
/** The string that represents an unknown value. The value is unknown until a different resource is created. */
export const UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9";
/** Signature of an output: a value, its dependencies, and a flag for secret values. */
export const OUTPUT = "d0e6a833031e9bbcd3f4e8bde6ca49a4";
/**
 * The strings that represent unknown values. Pulumi has one string for each property type, and {@link UNKNOWN} is the
 * first.
 */
export const UNKNOWNS: readonly string[] = [
  UNKNOWN,
  "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
  "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
  "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
  "030794c1-ac77-496b-92df-f27374a8bd58",
  "e48ece36-62e2-4504-bad9-02848725956a",
  "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
];
/** The property that contains a dynamic provider's code. */
export const PROVIDER_KEY = "__provider";

/**
 * Returns the code of a dynamic provider. The code only loads the installed package. Engines store the code twice in
 * the state of each resource, so it must be short. Engines run the stored code even after an upgrade of the package, so
 * the code must never change.
 */
export function providerText(resource: string): string {
  return `exports.handler=()=>require("@gatehouse-access/provider/dynamic").${resource}`;
}

/** The input that contains the URN of a resource that was created with a Pulumi class. Diffs ignore this input. */
export const LOGICAL_ID = "__logicalId";

/**
 * The input that contains the id of the state that contains the resource. Only resources of Pulumi classes have this
 * input. Diffs ignore this input.
 */
export const STATE_ID = "__stateId";

/**
 * The output that records which inputs the program sets. It contains only inputs that cannot be derived from the object
 * on the service, such as `adopt`. A dynamic provider needs this output because engines do not pass inputs to a read.
 * Diffs ignore this output.
 */
export const OPEN_INPUTS = "__openInputs";

/**
 * The output that contains the declarer of the object: the project, stack and resource that declared the object when
 * the state was written. If the current resource is a different one, the object has moved, and an update stores the
 * current resource as its declarer on the service. Diffs of values ignore this output.
 */
export const DECLARER = "__declarer";

const OF_DYNAMIC: readonly string[] = [PROVIDER_KEY, LOGICAL_ID, STATE_ID, OPEN_INPUTS, DECLARER];

/** Returns the values without the keys that engines and Pulumi classes add to dynamic resources. */
export const ownValues = (values: Values): Record<string, unknown> =>
  Object.fromEntries(Object.entries(values).filter(([name]) => !OF_DYNAMIC.includes(name)));

/** Returns only the values with keys that engines and Pulumi classes add to dynamic resources. */
export const dynamicValues = (values: Values): Record<string, unknown> =>
  Object.fromEntries(Object.entries(values).filter(([name]) => OF_DYNAMIC.includes(name)));

/** An existing object that a resource adopted. */
export interface Adopted {
  /** The name of the resource's class, such as `PublicKey`. */
  readonly type: string;
  /** The resource's name in the program. */
  readonly name: string;
  /** The object's id. */
  readonly id: string;
}

/**
 * Returns the message that reports the adoption of an existing object. The engines of this package print the message.
 * In their results, the object is adopted, not created.
 */
export const adoptionText = (id: string): string => `adopted the existing object ${id}`;

/**
 * Parses the adoption message: `type "name": `, followed by {@link adoptionText}. Returns undefined for any other
 * message.
 */
export function readAdoptionNotice(message: string): Adopted | undefined {
  const [, type, name, id] = /^(\w+) "(.*)": adopted the existing object (.+)$/.exec(message) ?? [];
  return type !== undefined && name !== undefined && id !== undefined ? { type, name, id } : undefined;
}

/** An object that a deletion left on the service, because a different stack was the last to declare it. */
export interface Left extends Adopted {
  /** The resource that was the last to declare the object. */
  readonly owner: string;
}

/**
 * Returns the message that reports an object that a deletion left on the service. The engines of this package print the
 * message, and the result of the run lists the object.
 * @param owner the resource that was the last to declare the object
 */
export const leftText = (id: string, owner: string): string =>
  `left the object ${id} on the service: ${owner} has declared it last; set GATEHOUSE_DELETE_CLAIMED=true or --delete-claimed to delete it`;

/**
 * Parses the message about an object that a deletion left on the service: `type "name": `, followed by {@link
 * leftText}. Returns undefined for any other message.
 */
export function readLeftNotice(message: string): Left | undefined {
  const [, type, name, id, owner] =
    /^(\w+) "(.*)": left the object (.+) on the service: (.+) has declared it last; /.exec(message) ?? [];
  return type !== undefined && name !== undefined && id !== undefined && owner !== undefined
    ? { type, name, id, owner }
    : undefined;
}
