import { randomBytes } from "node:crypto";
import { DAY } from "@gatehouse-access/sdk/times";
import type { Transaction } from "../../../db/sql/transaction.ts";
import { digestOf } from "../../../secrets/digest.ts";
import type { Services } from "../../../services.ts";
import type { AccountPurpose } from "../../outbox/outbox.ts";

/** Lifetime of a token in a mail, in milliseconds (rules Q5). */
const TOKEN_LIFE = DAY;

/** Returns 128 random bits, in the format that models section 0 defines. */
function newToken(): string {
  const hex = randomBytes(16).toString("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

/**
 * Purpose of a mailed token. For a pending address, the purpose is the name of the column that contains the address.
 */
type TokenPurpose = AccountPurpose | "email" | "recoveryEmail";

/**
 * Creates a token for a mail to a user. The new token replaces an earlier token for the same purpose. The database
 * stores only the digest of the token.
 * @param address the pending address that replaces the user's address when the token is used
 */
export async function createToken(
  services: Services,
  userId: string,
  purpose: TokenPurpose,
  address: string | null = null,
): Promise<string> {
  const token = newToken();
  const data = {
    address,
    digest: digestOf(token),
    expiresAt: new Date(services.now().getTime() + TOKEN_LIFE),
  };
  await services.db.mailToken.upsert({
    where: { userId_purpose: { userId, purpose } },
    create: { userId, purpose, ...data },
    update: data,
  });
  return token;
}

/** Returns a database filter that selects a user's valid tokens with one of the purposes. */
export const whereWaiting = (services: Services, userId: string, purposes: readonly TokenPurpose[]) => ({
  userId,
  purpose: { in: [...purposes] },
  expiresAt: { gt: services.now() },
});

const whereToken = (services: Services, userId: string, purpose: TokenPurpose, token: string) => ({
  ...whereWaiting(services, userId, [purpose]),
  digest: digestOf(token.toLowerCase()),
});

/** Returns true if {@link useToken} would accept the token. */
export async function isToken(
  services: Services,
  userId: string,
  purpose: TokenPurpose,
  token: string,
): Promise<boolean> {
  return (await services.db.mailToken.count({ where: whereToken(services, userId, purpose, token) })) > 0;
}

/**
 * Uses a token. A token can be used only once.
 * @returns the pending address of the token. Null if the token has no address, and undefined if the token is wrong,
 *   used or expired.
 */
export async function useToken(
  services: Services,
  tx: Transaction,
  userId: string,
  purpose: TokenPurpose,
  token: string,
): Promise<string | null | undefined> {
  const where = whereToken(services, userId, purpose, token);
  const row = await tx.mailToken.findFirst({ where, select: { address: true } });
  const { count } = await tx.mailToken.deleteMany({ where });
  return count > 0 ? row?.address : undefined;
}
