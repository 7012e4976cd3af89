import { createHash } from "node:crypto";
import * as OTPAuth from "otpauth";
import type { Timing } from "./retry.ts";
import type { Secret } from "./secret.ts";

/** Seconds a code is valid (rules section 10). */
const STEP = 30;

/** Last step a code was made for, by hash of the secret; for the whole process, as the server counts so. */
const lastSteps = new Map<string, number>();

/**
 * The code of the present step, or, when this process has used that already, of the next one, for which it
 * waits up to 30 seconds: a server takes no code twice.
 */
export async function nextTotpCode(secret: Secret, timing: Pick<Timing, "now" | "sleep">): Promise<string> {
  const id = createHash("sha256").update(secret.reveal()).digest("hex");
  for (;;) {
    const now = timing.now();
    const step = Math.floor(now / 1000 / STEP);
    const last = lastSteps.get(id);
    if (last === undefined || step > last) {
      lastSteps.set(id, step);
      const totp = new OTPAuth.TOTP({ secret: OTPAuth.Secret.fromBase32(secret.reveal()), period: STEP });
      return totp.generate({ timestamp: now });
    }
    await timing.sleep((last + 1) * STEP * 1000 - now);
  }
}
