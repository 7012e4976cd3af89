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

const MINUTE = 60_000;

/** The time until which a session can be renewed: a number of minutes after the issue of the exchanged token. */
export const lastEnd = (row: Pick<TrustedWorkload, "maxSessionMinutes">, startedAt: Date): Date =>
  new Date(startedAt.getTime() + Number(row.maxSessionMinutes) * MINUTE);
