import { randomUUID } from "node:crypto";
import { email, type PublicOperations } from "@gatehouse-access/sdk/contract";
import type { User } from "../../db/generated/sqlite/client.ts";
import { ForbiddenError, UnauthenticatedError } from "../../errors.ts";
import type { Handler } from "../../http/handler.ts";
import { rememberNetwork } from "../../http/limits/rateLimitCounts.ts";
import { digestOf } from "../../secrets/digest.ts";
import { DUMMY_HASH, verifyPassword } from "../../secrets/passwords.ts";
import type { Services } from "../../services.ts";
import { countFailure, forgetFailures, lockEnd, lockedOut, lockoutHeader } from "./lockout.ts";
import { startMfa } from "./mfa/mfaChallenge.ts";
import { homeOf, sessionOf } from "./session.ts";

/**
 * Returns the user who has this username. If the identifier is an e-mail address, returns the user who has this address
 * (rules section 11).
 * @param identifier in lower case
 */
export function findUser(services: Services, identifier: string): Promise<User | null> {
  const where = email.safeParse(identifier).success ? { email: identifier } : { username: identifier };
  return services.db.user.findUnique({ where });
}

const wrong = () =>
  new UnauthenticatedError("wrong user name or password", { "X-Account-Lockout": lockoutHeader(null) });

/**
 * Logs a user in with a password (rules sections 9 to 11). An unknown name has the same response, response time and
 * lockout as a wrong password. In the rules, an unknown name is never locked, but this would reveal which users exist.
 * (The name and the address of a user share a counter. So an attacker who tries both can detect that they belong to the
 * same user.)
 */
export const login: Handler<PublicOperations["login"]> = async (context) => {
  const { services, body, request, header, signal } = context;
  const identifier = body.username.toLowerCase();
  const found = await findUser(services, identifier);
  const user = found?.status !== "invited" && found?.origin === "local" ? found : null;
  const key = { source: request.network, subject: user?.id ?? digestOf(identifier) };

  const lockedBefore = await lockEnd(services, key);
  if (lockedBefore) throw lockedOut(lockedBefore);
  const correct = await verifyPassword(body.password, user?.passwordHash ?? DUMMY_HASH, signal);
  if (!user || !correct) {
    const locked = await countFailure(services, key);
    if (locked) throw lockedOut(locked);
    throw wrong();
  }
  // Concurrent attempts may have locked the key during the password check. The lock then also applies to this attempt.
  const lockedMeanwhile = await lockEnd(services, key);
  if (lockedMeanwhile) throw lockedOut(lockedMeanwhile);
  await forgetFailures(services, key);
  if (services.settings.loginsPerAccount > 0) await rememberNetwork(services, identifier, request.network);
  // This check runs only after a correct password, so that other callers cannot find out whether the account exists.
  if (user.status !== "confirmed") throw new ForbiddenError("the account is not confirmed yet");

  header("X-Account-Lockout", lockoutHeader(null));
  if (user.mfaSecret !== null) {
    const token = randomUUID();
    if (!(await startMfa(services, user, token))) throw wrong();
    throw new UnauthenticatedError("a second factor is required", { "X-MFA-Token": token });
  }
  await services.db.user.update({ where: { id: user.id }, data: { lastLogin: services.now() } });
  return sessionOf(services, user, await homeOf(services, user), null);
};
