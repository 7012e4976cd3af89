import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import type { User } from "../../db/generated/sqlite/client.ts";
import { inTransaction, type Transaction, within } from "../../db/transaction.ts";
import { ForbiddenError, InvalidError, UnauthenticatedError } from "../../errors.ts";
import type { Handler } from "../../http/handler.ts";
import type { RequestFacts } from "../../http/requestFacts.ts";
import { digestOf } from "../../secrets/digest.ts";
import type { Services } from "../../services.ts";
import { callingUser } from "./callingUser.ts";
import { type AccountChange, changeAccount } from "./changeAccount.ts";
import { forgetFailures, type LockoutKey } from "./lockout.ts";
import { findUser } from "./login.ts";
import { acceptCode, mfaCounter, takeAttempt } from "./mfaChallenge.ts";
import { homeOf, sessionOf } from "./session.ts";

/** How long a recovery code that logged in may still disable MFA, in milliseconds (rules section 10.7). */
const DISABLING_LIFE = 10 * 60_000;

/**
 * The user with MFA whom the identifier names; null for any other name.
 * @param identifier as it was sent
 */
export async function findMfaUser(services: Services, identifier: string): Promise<User | null> {
  const user = await findUser(services, identifier.toLowerCase());
  return user?.mfaSecret != null && user.status === "confirmed" ? user : null;
}

/**
 * Where something is counted that strangers may try for any name, by the network that they come from: else they, who need
 * no password here, could keep a user from it for ever. Codes of 80 bits need no lock that counts for all networks. Names
 * that no user with MFA has are counted too, so that a lock does not tell who has one.
 */
export const strangersCounter = (what: string, { network }: RequestFacts, subject: string): LockoutKey => ({
  source: `${what} from ${network}`,
  subject,
});

/** Whom attempts for an identifier are counted for: the user, else a digest of the name that no user with MFA has. */
export const subjectOf = (user: User | null, identifier: string): string =>
  user?.id ?? digestOf(identifier.toLowerCase());

/** Login by a recovery code alone (rules section 10.6); MFA stays on. */
export const recoverMfa: Handler<PublicOperations["recoverMfa"]> = async (context) => {
  const { services, body, request, header } = context;
  const user = await findMfaUser(services, body.identifier);
  const counter = strangersCounter("mfa recovery", request, subjectOf(user, body.identifier));
  await takeAttempt(services, counter);
  const now = services.now();
  const disablesUntil = new Date(Math.floor((now.getTime() + DISABLING_LIFE) / 1000) * 1000);
  const used = await inTransaction(services, async (tx) => {
    const { count } = await tx.recoveryCode.updateMany({
      where: { userId: user?.id ?? "", digest: digestOf(body.recovery_code), disablesUntil: null },
      data: { disablesUntil },
    });
    if (count > 0) await forgetFailures(within(services, tx), counter);
    return count > 0;
  });
  if (user === null || !used) throw new UnauthenticatedError("wrong identifier or recovery_code");
  await services.db.user.update({ where: { id: user.id }, data: { lastLogin: now } });
  header("X-Expires-At", disablesUntil.getTime() / 1000);
  return sessionOf(services, user, await homeOf(services, user), null);
};

/** Wrong codes count as those of logins do: six digits could be guessed here with a stolen token. */
export const disableMfa: Handler<PublicOperations["disableMfa"]> = async (context) => {
  const { services, identity, body, request } = context;
  const { code, recovery_code: recoveryCode } = body;
  if (Boolean(code) === Boolean(recoveryCode))
    throw new InvalidError("code, recovery_code: one of the two must be given");
  const user = await callingUser(services, identity);
  if (user.mfaSecret === null) throw new InvalidError("MFA is not enabled");
  const wrong = () => new ForbiddenError("code, recovery_code: is wrong or used");
  const counter = mfaCounter(user.id);
  // Taken before the code is looked at, so that guesses sent side by side count one by one.
  await takeAttempt(services, counter);
  const change = { caller: identity, request, operation: "disableMfa" };
  const accepted = await inTransaction(services, async (tx) => {
    const inside = within(services, tx);
    if (code) {
      if (!(await acceptCode(inside, user, code))) return false;
    } else {
      if (!(await useRecoveryCode(services, tx, user, recoveryCode ?? ""))) return false;
      await forgetFailures(inside, counter);
    }
    await turnMfaOff(services, tx, user, change);
    return true;
  });
  if (!accepted) throw wrong();
  return undefined;
};

/** A fresh code, or one that logged in and may still disable MFA. */
async function useRecoveryCode(
  services: Services,
  tx: Transaction,
  user: User,
  code: string,
): Promise<boolean> {
  const { count } = await tx.recoveryCode.deleteMany({
    where: {
      userId: user.id,
      digest: digestOf(code),
      OR: [{ disablesUntil: null }, { disablesUntil: { gt: services.now() } }],
    },
  });
  return count === 1;
}

/**
 * Turns MFA off, with everything that was for it. As turning it on, this leaves tokens as they are.
 * @param voidTokens make all tokens void nevertheless
 * @throws InvalidError it is off already
 */
export async function turnMfaOff(
  services: Services,
  tx: Transaction,
  { id }: User,
  change: AccountChange,
  voidTokens = false,
): Promise<void> {
  const user = await tx.user.findUniqueOrThrow({ where: { id } });
  if (user.mfaSecret === null) throw new InvalidError("MFA is not enabled");
  const data = {
    mfaSecret: null,
    mfaLastStep: null,
    ...(voidTokens && { tokenVersion: { increment: 1 } }),
  };
  await changeAccount(services, tx, user, data, change);
  await forgetMfa(tx, id);
}

/** Removes what was for a user's MFA: recovery codes, logins that wait for a code, and requests to reset it. */
export async function forgetMfa(tx: Transaction, userId: string): Promise<void> {
  await tx.recoveryCode.deleteMany({ where: { userId } });
  await tx.mfaChallenge.deleteMany({ where: { userId } });
  await tx.mfaReset.deleteMany({ where: { userId } });
}
