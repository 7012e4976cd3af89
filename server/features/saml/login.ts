import { randomUUID } from "node:crypto";
import { inTransaction } from "../../db/sql/transaction.ts";
import { ForbiddenError, UnauthenticatedError } from "../../errors.ts";
import type { RequestFacts } from "../../http/listener/requestFacts.ts";
import { digestOf } from "../../secrets/digest.ts";
import type { Services } from "../../services.ts";
import type { SamlSettings } from "../../settings/readConfig.ts";
import { startMfa } from "../users/mfa/mfaChallenge.ts";
import { homeOf, sessionOf } from "../users/session.ts";
import { type Answer, readResponse } from "./identityProvider.ts";
import { requestEnd } from "./requestIds.ts";
import { SamlError } from "./SamlError.ts";
import { personOf, samlUser } from "./samlUser.ts";

interface Login {
  /** Value of the form field `SAMLResponse`. */
  readonly response: string;
  readonly request: RequestFacts;
  /** Called with the error when a response is rejected. */
  refused(error: SamlError): void;
}

/**
 * Completes a login at the identity provider (rules section 11). The response is not bound to the browser that started
 * the login. A binding would not help, because the token is part of a link that a user can send to another person.
 *
 * A user with MFA must also enter the second factor of this service, so that an attacker who controls the identity
 * provider cannot log in.
 * @returns the redirect address for the browser
 * @throws UnauthenticatedError the response was rejected
 * @throws ForbiddenError, LockedOutError see `samlUser` and `startMfa`
 */
export async function finishSamlLogin(
  services: Services,
  settings: SamlSettings,
  login: Login,
): Promise<string> {
  const answer = await accepted(services, settings, login);
  const person = personOf(settings, answer.nameId, answer.attributes);
  if (person === undefined) return page(settings, "/login", { missing_assertions: "true" });
  const user = await samlUser(services, settings, person, login.request);
  if (user.mfaSecret !== null) {
    const token = randomUUID();
    if (!(await startMfa(services, user, token))) throw new ForbiddenError("the user's logins were ended");
    return page(settings, "/mfa-login", { token });
  }
  await services.db.user.update({ where: { id: user.id }, data: { lastLogin: services.now() } });
  const { token } = await sessionOf(services, user, await homeOf(services, user), null);
  return page(settings, "/login", { token });
}

const page = ({ serviceUrl }: SamlSettings, path: string, query: Record<string, string>): string =>
  `${serviceUrl}${path}?${new URLSearchParams(query)}`;

async function accepted(services: Services, settings: SamlSettings, login: Login): Promise<Answer> {
  try {
    const answer = await readResponse(services, settings, login.response);
    await useOnce(services, settings, answer);
    return answer;
  } catch (error) {
    if (!(error instanceof SamlError)) throw error;
    login.refused(error);
    throw new UnauthenticatedError(
      "SAMLResponse: the service rejected the response; see the service's log for the reason",
    );
  }
}

/**
 * Marks the login request and the assertion as used, in the database that all instances share. Rejects a request or
 * assertion that was already used.
 */
async function useOnce(services: Services, { idpEntityId }: SamlSettings, answer: Answer): Promise<void> {
  const now = services.now();
  const expiresAt = requestEnd(services, answer.request);
  if (expiresAt === undefined || expiresAt <= now)
    throw new SamlError("InResponseTo: this service did not create the request, or the request has expired");
  const digests = [`request ${answer.request}`, `assertion ${answer.id} of ${idpEntityId}`].map(digestOf);
  await inTransaction(services, async (tx) => {
    await tx.usedSamlMessage.deleteMany({ where: { expiresAt: { lte: now } } });
    const used = await tx.usedSamlMessage.count({ where: { digest: { in: digests } } });
    if (used > 0) throw new SamlError("the request or the assertion has already been used");
    // An assertion belongs to exactly one request, so both expire at the same time.
    await tx.usedSamlMessage.createMany({ data: digests.map((digest) => ({ digest, expiresAt })) });
  });
}
