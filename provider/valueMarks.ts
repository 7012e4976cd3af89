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
/** The property that holds a dynamic provider's code. */
export const PROVIDER_KEY = "__provider";
