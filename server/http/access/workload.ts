import type { TrustedWorkload } from "../../db/generated/sqlite/client.ts";
import { digestOf } from "../../secrets/digest.ts";

/**
 * Returns a digest of the rules that a workload's token met. A session is valid only while the workload has the same
 * rules.
 */
export const rulesDigest = ({
  issuer,
  audience,
  claims,
}: Pick<TrustedWorkload, "issuer" | "audience" | "claims">): string =>
  digestOf(JSON.stringify([issuer, audience, claims]));
