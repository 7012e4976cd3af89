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
