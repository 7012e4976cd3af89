// Marks that providers and engines exchange inside ordinary values and messages. Pulumi's engines define the
// signatures. The other keys and the notice belong to this package, and the keys are stored in every state file.

/** The key that marks an object among a resource's properties as special. */
export const SIGNATURE = "4dabf18193072939515e22adb298388d";
/** Signature of a secret. */
export const SECRET = "1b47061264138c4ac30d75fd1eb44270";
/** Signature of a reference to a resource. */
export const RESOURCE = "5cf8f73096256a8f31e491e813e4eb8e";
/** Signature of an asset. */
export const ASSET = "c44067f5952c0a294b673a41bacd8c17";
/** Signature of an archive. */
export const ARCHIVE = "0def7320c3a5731c473e5ecbe6d01bc7";
/** The text that represents a value that is unknown until another resource is created. */
export const UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9";
/** Signature of a value with an output's metadata: whether the value is secret, and its dependencies. */
export const OUTPUT = "d0e6a833031e9bbcd3f4e8bde6ca49a4";
/** {@link UNKNOWN}, and the texts that represent unknown values of other types. */
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
 * Returns the provider's code that a resource's state contains. The code only loads the installed package. It is
 * constant and short because the engine stores it twice for each resource, and runs the stored text even after an
 * upgrade.
 */
export function providerText(resource: string): string {
  return `exports.handler=()=>require("@gatehouse-access/provider/dynamic").${resource}`;
}

/** The input that contains the URN of a class's resource. It is not part of any diff. */
export const LOGICAL_ID = "__logicalId";

/** The input that contains the id of the state of a class's resource. It is not part of any diff. */
export const STATE_ID = "__stateId";

/**
 * The output that stores the program's inputs that the object does not show. A dynamic provider needs it because a
 * read gets no inputs. It is not part of any diff.
 */
export const OPEN_INPUTS = "__openInputs";

type Values = Readonly<Record<string, unknown>>;

const OF_DYNAMIC: readonly string[] = [PROVIDER_KEY, LOGICAL_ID, STATE_ID, OPEN_INPUTS];

/** Returns the values without the keys that only current or former dynamic resources have. */
export const ownValues = (values: Values): Record<string, unknown> =>
  Object.fromEntries(Object.entries(values).filter(([name]) => !OF_DYNAMIC.includes(name)));

/** Returns the values that belong to dynamic resources and not to a definition. */
export const dynamicValues = (values: Values): Record<string, unknown> =>
  Object.fromEntries(Object.entries(values).filter(([name]) => OF_DYNAMIC.includes(name)));

/** An existing object that a resource adopted. */
export interface Adopted {
  /** The resource's class. */
  readonly type: string;
  /** The resource's name in the program. */
  readonly name: string;
  /** The object's id. */
  readonly id: string;
}

/** Returns the notice of an adoption. Our engines print it, and count the object as adopted instead of created. */
export const adoptionText = (id: string): string => `adopted the existing object ${id}`;

/**
 * Parses an adoption notice of the form `type "name": ` and {@link adoptionText}. Returns undefined for any other
 * line.
 */
export function readAdoptionNotice(message: string): Adopted | undefined {
  const [, type, name, id] = /^(\w+) "(.*)": adopted the existing object (.+)$/.exec(message) ?? [];
  return type !== undefined && name !== undefined && id !== undefined ? { type, name, id } : undefined;
}
