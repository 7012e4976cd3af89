import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import { DAY, HOUR } from "@gatehouse-access/sdk/times";
import type { User } from "../../../db/generated/sqlite/client.ts";
import { inTransaction, within } from "../../../db/sql/transaction.ts";
import { NotFoundError, UnauthenticatedError } from "../../../errors.ts";
import type { Handler } from "../../../http/handler.ts";
import { countInDatabase } from "../../../http/limits/rateLimitCounts.ts";
import type { Mail } from "../../../mail/mail.ts";
import { digestOf } from "../../../secrets/digest.ts";
import type { Services } from "../../../services.ts";
import { pageLink } from "../../outbox/links.ts";
import { queueAccountMail } from "../../outbox/outbox.ts";
import { actingUser } from "../callingUser.ts";
import { forgetFailures } from "../lockout.ts";
import { homeOf, sessionOf } from "../session.ts";
import { newRecoveryCode } from "./mfa.ts";
import { takeAttempt } from "./mfaChallenge.ts";
import { findMfaUser, networkCounter, subjectOf, turnMfaOff } from "./mfaRecovery.ts";

/** Lifetime of the reset codes, in milliseconds (rules section 10.8). */
const RESET_LIFE = DAY;
/**
 * Maximum number of valid code pairs of one user. Above this maximum, a new pair invalidates the oldest pair. Several
 * pairs are valid at the same time, so that an attacker's request does not invalidate the codes that the user is about
 * to enter.
 */
const WAITING = 10;
/**
 * Maximum number of requests that send mails to a user in a time window, and the length of the window in milliseconds.
 * Requests from all networks are counted together. Further requests get the same response, but send no mails. The user
 * can still use the codes in earlier mails.
 */
const MAILS = { most: 5, window: HOUR };

/**
 * Returns the digest under which a reset code is stored. The digest includes the address that received the code, so the
 * code becomes invalid if the user changes the address.
 */
const digestFor = (address: string, code: string): string => digestOf(`${address} ${code}`);

/**
 * Requests a reset of MFA, and queues the mails with the two reset codes (rules section 10.8). The response and the
 * response time are the same for every name, so that they do not reveal which users exist.
 */
export const requestResetMfa: Handler<PublicOperations["requestResetMfa"]> = async (context) => {
  const { services, body, request } = context;
  const user = await findMfaUser(services, body.identifier);
  const subject = subjectOf(user, body.identifier);
  await takeAttempt(services, networkCounter("mfa reset mail", request, subject));
  const { count } = await countInDatabase(services, `mfa reset mails to ${subject}`, MAILS.window);
  if (count <= MAILS.most)
    await queueAccountMail(services, { purpose: "mfaReset", account: body.identifier.toLowerCase() });
  return undefined;
};

/** Returns two mails, each with a new code. The list is empty if no user with MFA has the name. */
export async function mfaResetMails(services: Services, account: string): Promise<Mail[]> {
  const user = await findMfaUser(services, account);
  if (user === null || user.recoveryEmail === "") return [];
  const codes = { main: newRecoveryCode(), recovery: newRecoveryCode() };
  await storeReset(services, user, codes);
  return [
    resetMail(services, user, user.email, "first", codes.main),
    resetMail(services, user, user.recoveryEmail, "second", codes.recovery),
  ];
}

interface Codes {
  readonly main: string;
  readonly recovery: string;
}

async function storeReset(services: Services, user: User, { main, recovery }: Codes): Promise<void> {
  const now = services.now();
  await inTransaction(services, async (tx) => {
    await tx.mfaReset.deleteMany({ where: { expiresAt: { lte: now } } });
    const waiting = await tx.mfaReset.findMany({
      where: { userId: user.id },
      orderBy: { expiresAt: "desc" },
      skip: WAITING - 1,
    });
    await tx.mfaReset.deleteMany({ where: { mainDigest: { in: waiting.map((row) => row.mainDigest) } } });
    await tx.mfaReset.create({
      data: {
        mainDigest: digestFor(user.email, main),
        recoveryDigest: digestFor(user.recoveryEmail, recovery),
        userId: user.id,
        expiresAt: new Date(now.getTime() + RESET_LIFE),
      },
    });
  });
}

function resetMail(
  services: Services,
  user: User,
  to: string,
  which: "first" | "second",
  code: string,
): Mail {
  const page = pageLink(services, "/reset-mfa", { id: user.id });
  const other = which === "first" ? "recovery e-mail address" : "main e-mail address";
  return {
    to,
    subject: "Reset of your second factor",
    text: [
      "A request was made to turn off multi-factor authentication for your account.",
      `The ${which} code is:`,
      code,
      `The other code was sent to your ${other}. Enter both codes on this page:`,
      page,
      "The codes are valid for one day. If you did not request this, ignore this mail. Your account does not change " +
        "unless both codes are entered.",
    ].join("\n\n"),
  };
}

/**
 * Turns off MFA, and logs the user in (rules section 10.9). All tokens of the user become invalid, because a token may
 * have been stolen together with the second factor.
 */
export const resetMfa: Handler<PublicOperations["resetMfa"]> = async ({
  services,
  params,
  body,
  request,
}) => {
  const id = params["user-id"];
  const user = await services.db.user.findUnique({ where: { id } });
  if (user === null) throw new NotFoundError("user-id: no user has this id");
  const counter = networkCounter("mfa reset", request, id);
  await takeAttempt(services, counter);
  const caller = actingUser(user);
  await inTransaction(services, async (tx) => {
    const { count } = await tx.mfaReset.deleteMany({
      where: {
        userId: id,
        mainDigest: digestFor(user.email, body.main_email_code),
        recoveryDigest: digestFor(user.recoveryEmail, body.recovery_email_code),
        expiresAt: { gt: services.now() },
      },
    });
    if (count === 0)
      throw new UnauthenticatedError("main_email_code or recovery_email_code is wrong, used or expired");
    await forgetFailures(within(services, tx), counter);
    await turnMfaOff(services, tx, user, { caller, request, operation: "resetMfa" }, true);
  });
  const lastLogin = services.now();
  const changed = await services.db.user.update({ where: { id }, data: { lastLogin } });
  return sessionOf(services, changed, await homeOf(services, changed), null);
};
