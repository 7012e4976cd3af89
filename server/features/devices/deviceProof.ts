import { createPublicKey, randomUUID, verify } from "node:crypto";
import { devices, type PublicOperations } from "@gatehouse-access/sdk/contract";
import { MINUTE } from "@gatehouse-access/sdk/times";
import type { z } from "zod";
import { ForbiddenError } from "../../errors.ts";
import type { Handler } from "../../http/handler.ts";
import { isSameSecret } from "../../secrets/digest.ts";
import type { Services } from "../../services.ts";

/**
 * Lifetime of a challenge, in milliseconds. An agent signs a challenge to prove that it has the private key of its
 * device.
 */
const LIFE = MINUTE;
const PURPOSE = "device challenge";
/** Maximum size of the modulus of a device's RSA key, in bits. {@link EXPONENT} is the exponent of all device keys. */
const MODULUS_MAX = 4096;
const EXPONENT = 65_537n;

/**
 * Returns a challenge. It contains its expiry time, and a code with which the service recognizes its own challenges. So
 * every instance can check the challenge, and no instance stores it.
 */
export const challengeDevice: Handler<PublicOperations["challengeDevice"]> = async ({ services }) => {
  const text = `${services.now().getTime() + LIFE}.${randomUUID()}`;
  return { challenge: `${text}.${services.sealer.mark(text, PURPOSE)}` };
};

/** The error message for a device token that was issued without a proof. */
export const UNPROVEN =
  "the token was issued without a proof of the device's private key: request one with a proof (challengeDevice)";

function isValid(services: Services, challenge: string): boolean {
  const [end = "", id = "", mark = ""] = challenge.split(".");
  if (!isSameSecret(mark, services.sealer.mark(`${end}.${id}`, PURPOSE))) return false;
  return services.now().getTime() < Number(end);
}

type Report = z.output<typeof devices.authDevice.body>;

/**
 * Returns true if a report proves that its sender has the device's private key. Returns false if the report has no
 * proof.
 * @throws ForbiddenError the proof is invalid
 */
export function provesKey(services: Services, report: Report): boolean {
  const { proof, public_key: publicKey, tenant_id: tenant } = report;
  if (proof === undefined) return false;
  const { challenge, signature } = proof;
  if (!isValid(services, challenge)) {
    throw new ForbiddenError("proof.challenge is unknown or expired; request a new one (challengeDevice)");
  }
  const text = Buffer.from(devices.proofText(tenant, challenge));
  if (!hasSigned(publicKey, text, Buffer.from(signature, "base64"))) {
    throw new ForbiddenError("proof.signature: the private key of public_key did not sign the challenge");
  }
  return true;
}

function hasSigned(publicKey: string, text: Buffer, signature: Buffer): boolean {
  try {
    const key = createPublicKey(publicKey);
    const { modulusLength = 0, publicExponent } = key.asymmetricKeyDetails ?? {};
    // The keys of agents have this exponent, and their modulus has at most this size. A larger key is rejected, because
    // checking a signature with it takes milliseconds.
    if (modulusLength > MODULUS_MAX || publicExponent !== EXPONENT) return false;
    return verify("sha256", text, key, signature);
  } catch {
    // The public key in a report can be any string, so parsing it may fail.
    return false;
  }
}
