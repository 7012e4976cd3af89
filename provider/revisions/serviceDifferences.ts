/** What of a stack's configuration says where objects are. */
const KEYS = ["gatehouse:url", "gatehouse:tenant"];

type Configuration = ReadonlyMap<string, string>;

/** Keys of the configuration by which two revisions are about different services or namespaces. */
export const serviceDifferences = (was: Configuration, is: Configuration): string[] =>
  KEYS.filter((key) => was.get(key) !== is.get(key));
