import { randomBytes } from "node:crypto";
import { digestOf } from "../../secrets.ts";
import type { Services } from "../../services.ts";
import type { AccountPurpose } from "../mails/outbox.ts";
import type { Transaction } from "../transaction.ts";

/** How long a token in a mail works, in milliseconds (rules Q5). */
const TOKEN_LIFE = 24 * 60 * 60_000;

/** 128 random bits, in the form that models section 0 gives these tokens. */
function newToken(): string {
  const hex = randomBytes(16).toString("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

/** A new token of a user, in place of an earlier one for the same purpose; only a digest of it is kept. */
export async function makeToken(
  services: Services,
  userId: string,
  purpose: AccountPurpose,
): Promise<string> {
  const token = newToken();
  const data = {
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

const whereToken = (services: Services, userId: string, purpose: AccountPurpose, token: string) => ({
  userId,
  purpose,
  digest: digestOf(token.toLowerCase()),
  expiresAt: { gt: services.now() },
});

/** True for a token that {@link useToken} would take. */
export async function isToken(
  services: Services,
  userId: string,
  purpose: AccountPurpose,
  token: string,
): Promise<boolean> {
  return (await services.db.mailToken.count({ where: whereToken(services, userId, purpose, token) })) > 0;
}

/** Takes a token, which then works no more; false for one that is wrong, used or too old. */
export async function useToken(
  services: Services,
  tx: Transaction,
  userId: string,
  purpose: AccountPurpose,
  token: string,
): Promise<boolean> {
  const { count } = await tx.mailToken.deleteMany({ where: whereToken(services, userId, purpose, token) });
  return count > 0;
}
