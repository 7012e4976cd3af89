import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import { MINUTE } from "@gatehouse-access/sdk/times";
import type { User } from "../../../db/generated/sqlite/client.ts";
import { inTransaction, type Transaction, within } from "../../../db/sql/transaction.ts";
import { ForbiddenError, InvalidError, UnauthenticatedError } from "../../../errors.ts";
import type { Handler } from "../../../http/handler.ts";
import type { RequestFacts } from "../../../http/listener/requestFacts.ts";
import { digestOf } from "../../../secrets/digest.ts";
import type { Services } from "../../../services.ts";
import { type AccountChange, changeAccount } from "../account/changeAccount.ts";
import { callingUser } from "../callingUser.ts";
import { forgetFailures, type LockoutKey } from "../lockout.ts";
import { findUser } from "../login.ts";
import { homeOf, sessionOf } from "../session.ts";
import { acceptCode, mfaCounter, takeAttempt } from "./mfaChallenge.ts";

/**
 * Time, in milliseconds, for which a recovery code can still turn off MFA after a login with this code (rules section
 * 10.7).
 */
const DISABLING_LIFE = 10 * MINUTE;

/**
 * Returns the user who has this identifier. Returns null if no confirmed user with MFA has the identifier.
 * @param identifier as sent in the request
 */
export async function findMfaUser(services: Services, identifier: string): Promise<User | null> {
  const user = await findUser(services, identifier.toLowerCase());
  return user?.mfaSecret != null && user.status === "confirmed" ? user : null;
}

/**
 * Returns the key of a counter for attempts of operations that need no password. Each network has its own counter. With
 * one counter for all networks, an attacker could lock out a user forever. An attacker with many networks still cannot
 * guess the codes, because the codes have 80 bits. Attempts for names that do not belong to a user with MFA are counted
 * too, so that a lock does not reveal which users have MFA.
 */
export const networkCounter = (what: string, { network }: RequestFacts, subject: string): LockoutKey => ({
  source: `${what} from ${network}`,
  subject,
});

/**
 * Returns the subject under which attempts with an identifier are counted. This is the id of the user with MFA who has
 * the identifier. If there is no such user, it is a digest of the identifier.
 */
export const subjectOf = (user: User | null, identifier: string): string =>
  user?.id ?? digestOf(identifier.toLowerCase());

/**
 * Logs a user in with a recovery code instead of the password and the second factor (rules section 10.6). MFA stays on.
 */
export const recoverMfa: Handler<PublicOperations["recoverMfa"]> = async (context) => {
  const { services, body, request, header } = context;
  const user = await findMfaUser(services, body.identifier);
  const counter = networkCounter("mfa recovery", request, subjectOf(user, body.identifier));
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

/**
 * Turns off MFA. Wrong codes are counted together with the wrong codes of logins, because an attacker with a stolen
 * token could otherwise use this operation to guess the six digits.
 */
export const disableMfa: Handler<PublicOperations["disableMfa"]> = async (context) => {
  const { services, identity, body, request } = context;
  const { code, recovery_code: recoveryCode } = body;
  if (Boolean(code) === Boolean(recoveryCode))
    throw new InvalidError("code, recovery_code: exactly one of them is required");
  const user = await callingUser(services, identity);
  if (user.mfaSecret === null) throw new InvalidError("MFA is not enabled");
  const wrong = () => new ForbiddenError("code or recovery_code is wrong or already used");
  const counter = mfaCounter(user.id);
  // The attempt is counted before the code is checked, so that every concurrent guess is counted.
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

/**
 * Uses a recovery code. Returns true if the code was unused. Also returns true if the code was used for a login so
 * recently that it can still turn off MFA.
 */
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
 * Turns off MFA, and deletes all MFA data of the user.
 * @param voidTokens true to also invalidate all tokens of the user. By default, the tokens stay valid.
 * @throws InvalidError MFA is already off
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

/** Deletes the MFA data of a user: recovery codes, logins that are waiting for a code, and requests to reset MFA. */
export async function forgetMfa(tx: Transaction, userId: string): Promise<void> {
  await tx.recoveryCode.deleteMany({ where: { userId } });
  await tx.mfaChallenge.deleteMany({ where: { userId } });
  await tx.mfaReset.deleteMany({ where: { userId } });
}
