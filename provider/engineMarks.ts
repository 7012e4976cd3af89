// What the providers and the engines exchange inside ordinary values and messages. Pulumi's engines fix the
// signatures; the other keys and the notice are this package's own, and the keys are in every state file.

/** The key under which an object among a resource's properties says that it is special. */
export const SIGNATURE = "4dabf18193072939515e22adb298388d";
/** Signature of a secret. */
export const SECRET = "1b47061264138c4ac30d75fd1eb44270";
/** Signature of a reference to a resource. */
export const RESOURCE = "5cf8f73096256a8f31e491e813e4eb8e";
/** Signature of an asset. */
export const ASSET = "c44067f5952c0a294b673a41bacd8c17";
/** Signature of an archive. */
export const ARCHIVE = "0def7320c3a5731c473e5ecbe6d01bc7";
/** The text that stands for a value which is not known before another resource is made. */
export const UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9";
/** Signature of a value that says all that an output knows: whether it is secret, and what it depends on. */
export const OUTPUT = "d0e6a833031e9bbcd3f4e8bde6ca49a4";
/** {@link UNKNOWN}, and the texts that stand for what is not known of other types. */
export const UNKNOWNS: readonly string[] = [
  UNKNOWN,
  "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
  "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
  "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
  "030794c1-ac77-496b-92df-f27374a8bd58",
  "e48ece36-62e2-4504-bad9-02848725956a",
  "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
];
/** The property that holds a dynamic provider's code. */
export const PROVIDER_KEY = "__provider";

/**
 * The code of its provider that a resource carries in the state. It only loads the installed code, and is constant and
 * tiny: the engine stores it twice for each resource, and runs the stored text even after an upgrade.
 */
export function providerText(resource: string): string {
  return `exports.handler=()=>require("@gatehouse-access/provider/dynamic").${resource}`;
}

/** The input by which a class says which resource it is: its URN. It is no part of any diff. */
export const LOGICAL_ID = "__logicalId";

/** The input by which a class says which state its resource is in. It is no part of any diff. */
export const STATE_ID = "__stateId";

/**
 * The output that keeps what the program said beside what the object shows: a dynamic provider that reads an object gets
 * no inputs. It is no part of any diff.
 */
export const OPEN_INPUTS = "__openInputs";

type Values = Readonly<Record<string, unknown>>;

const OF_DYNAMIC: readonly string[] = [PROVIDER_KEY, LOGICAL_ID, STATE_ID, OPEN_INPUTS];

/** The values without those that no definition has: what makes a resource a dynamic one, now or formerly. */
export const ownValues = (values: Values): Record<string, unknown> =>
  Object.fromEntries(Object.entries(values).filter(([name]) => !OF_DYNAMIC.includes(name)));

/** The values that no definition has. */
export const dynamicValues = (values: Values): Record<string, unknown> =>
  Object.fromEntries(Object.entries(values).filter(([name]) => OF_DYNAMIC.includes(name)));

/** An object that was there before, and that a resource took over. */
export interface Adopted {
  /** The resource's class. */
  readonly type: string;
  /** The resource's name in the program. */
  readonly name: string;
  /** The object's id. */
  readonly id: string;
}

/** What a provider says of it. Our engines show it, and count the object as adopted instead of created. */
export const adoptionText = (id: string): string => `took over ${id}, which was there already`;

/** What a line says of an object that was taken over, as `type "name": ` and {@link adoptionText}; undefined for any other. */
export function readAdoptionNotice(message: string): Adopted | undefined {
  const [, type, name, id] = /^(\w+) "(.*)": took over (.+), which was there already$/.exec(message) ?? [];
  return type !== undefined && name !== undefined && id !== undefined ? { type, name, id } : undefined;
}
