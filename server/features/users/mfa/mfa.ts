import { randomBytes } from "node:crypto";
import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import { Secret, TOTP } from "otpauth";
import { inTransaction, within } from "../../../db/sql/transaction.ts";
import { InvalidError, UnauthenticatedError } from "../../../errors.ts";
import type { Handler } from "../../../http/handler.ts";
import { digestOf } from "../../../secrets/digest.ts";
import { notifyOfMfa } from "../account/addresses.ts";
import { changeAccount } from "../account/changeAccount.ts";
import { callingUser } from "../callingUser.ts";
import { homeOf, sessionOf } from "../session.ts";
import { finishMfa, matchingStep, sealMfaSecret } from "./mfaChallenge.ts";

const ISSUER = "Gatehouse";
/** Number of bytes in a TOTP secret. RFC 4226 recommends this number for SHA-1. */
const SECRET_BYTES = 20;
/**
 * Number of recovery codes, and number of bytes in each code. Each of the six codes has 16 base32 characters (rules
 * Q9).
 */
const RECOVERY_CODES = 6;
const RECOVERY_CODE_BYTES = 10;

export const authMfa: Handler<PublicOperations["authMfa"]> = async ({ services, body }) => {
  const user = await finishMfa(services, body.token, body.code);
  await services.db.user.update({ where: { id: user.id }, data: { lastLogin: services.now() } });
  return sessionOf(services, user, await homeOf(services, user), null);
};

/** Returns a new code that recovers or resets MFA: 80 random bits in base32. */
export const newRecoveryCode = (): string => base32(RECOVERY_CODE_BYTES);

const base32 = (bytes: number): string =>
  new Secret({ buffer: new Uint8Array(randomBytes(bytes)).buffer }).base32;

export const generateMfa: Handler<PublicOperations["generateMfa"]> = async ({ services, identity }) => {
  const user = await callingUser(services, identity);
  const secret = base32(SECRET_BYTES);
  const totp = new TOTP({ issuer: ISSUER, label: user.username, secret: Secret.fromBase32(secret) });
  return {
    link: totp.toString(),
    secret,
    recovery_codes: Array.from({ length: RECOVERY_CODES }, newRecoveryCode),
  };
};

export const enableMfa: Handler<PublicOperations["enableMfa"]> = async (context) => {
  const { services, identity, body, request } = context;
  const user = await callingUser(services, identity);
  if (user.mfaSecret !== null) throw new InvalidError("MFA is already enabled");
  if (user.recoveryEmail === "")
    throw new InvalidError("recovery_email: set a recovery address before you enable MFA");
  // The code is checked, but is not marked as used. Here it proves only that the user has stored the secret, so the
  // next login can use the same code.
  if (matchingStep(services, body.secret, body.code) === null) {
    throw new UnauthenticatedError(
      "code: the code does not match the secret; check the clock of the authenticator app",
    );
  }
  const digests = [...new Set(body.recovery_codes.map(digestOf))];
  await inTransaction(services, async (tx) => {
    const { mfaSecret } = await tx.user.findUniqueOrThrow({ where: { id: user.id } });
    if (mfaSecret !== null) throw new InvalidError("MFA is already enabled");
    const data = { mfaSecret: sealMfaSecret(services, user.id, body.secret), mfaLastStep: null };
    await changeAccount(services, tx, user, data, { caller: identity, request, operation: "enableMfa" });
    await tx.recoveryCode.deleteMany({ where: { userId: user.id } });
    await tx.mfaReset.deleteMany({ where: { userId: user.id } });
    await tx.recoveryCode.createMany({ data: digests.map((digest) => ({ userId: user.id, digest })) });
    await notifyOfMfa(within(services, tx), user);
  });
  return undefined;
};
