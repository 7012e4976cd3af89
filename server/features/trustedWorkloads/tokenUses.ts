import { trustedWorkloads } from "@gatehouse-access/sdk/contract";
import { HOUR } from "@gatehouse-access/sdk/times";
import type { TrustedWorkload } from "../../db/generated/sqlite/client.ts";
import { findRow, insertRows } from "../../db/sql/rows.ts";
import { inTransaction } from "../../db/sql/transaction.ts";
import { UnauthenticatedError } from "../../errors.ts";
import { digestOf } from "../../secrets/digest.ts";
import type { Services } from "../../services.ts";

const GENERAL_REFUSAL =
  "no trusted workload of the namespace matches the token. Check the tenant, and the issuer and the audience of the " +
  "workload. The token must have a valid signature of its issuer and the claims iat and exp, and must not be expired";

/** The error for a token that the service rejects. */
export class RejectedToken extends UnauthenticatedError {
  /** The cause. It is only logged. */
  readonly reason: string;

  /** @param message the message in the response. The default message is the same for all namespaces and tokens. */
  constructor(reason: string, message = GENERAL_REFUSAL) {
    super(message);
    this.reason = reason;
  }
}

/**
 * Time for which the use of a token is stored after the token has expired, in milliseconds. It allows for different
 * clocks of the instances.
 */
const KEPT = HOUR;

/**
 * Records the exchange of a token. A token can be exchanged only once in all namespaces, even after its workload is
 * deleted. A client can repeat a request whose response was lost: the same workload can exchange the token again with
 * the same nonce. The id of a token (`jti`) is unique only for its issuer, so an issuer cannot use up the tokens of a
 * different issuer.
 */
export async function useOnce(
  services: Services,
  { id: workloadId, tenantId, issuer }: TrustedWorkload,
  { jti, iat, exp }: { readonly jti?: string; readonly iat: number; readonly exp: number },
  nonce: string | undefined,
): Promise<void> {
  if (typeof jti !== "string" || jti === "") {
    throw new RejectedToken(
      "the token has no jti",
      "the token has no claim jti, which the trusted workload requires. Set single_use to false for this issuer",
    );
  }
  const token = { issuer, digest: digestOf(jti) };
  const nonceDigest = nonce === undefined ? null : digestOf(nonce);
  await inTransaction(services, async (tx) => {
    // The workload may have been deleted after the exchange began.
    if ((await findRow(tx, "TrustedWorkload", { tenantId, id: workloadId })) === null) {
      throw new RejectedToken("the workload was deleted");
    }
    // A token that is older than the longest possible session cannot be exchanged.
    const last = iat + trustedWorkloads.SESSION_MINUTES_MAX * 60;
    const expiresAt = new Date(Math.min(exp, last) * 1000);
    if (await insertRows(tx, "TokenUse", [{ ...token, workloadId, nonceDigest, expiresAt }])) return;
    const earlier = await findRow(tx, "TokenUse", token);
    const isRepeated =
      nonceDigest !== null && earlier?.nonceDigest === nonceDigest && earlier.workloadId === workloadId;
    if (!isRepeated) {
      throw new RejectedToken(
        "the token was already exchanged",
        "the token was already exchanged, and can be exchanged only once. Request a new token from its issuer",
      );
    }
  });
}

/** Deletes the expired records of exchanged tokens. */
export async function forgetTokenUses({ db, now }: Pick<Services, "db" | "now">): Promise<void> {
  await db.tokenUse.deleteMany({ where: { expiresAt: { lt: new Date(now().getTime() - KEPT) } } });
}
