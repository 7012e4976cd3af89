import { type Refusal, UnreachableError } from "../protocol.ts";
import type { DeviceLogin } from "./DeviceLogin.ts";
import type { ServiceClient } from "./ServiceClient.ts";

/** An attempt to log in, without the credential itself. */
export interface LoginAttempt {
  readonly entry: "ssh" | "web";
  readonly credential: "key" | "password" | "none";
  /** For `ssh`, the user name that the client sends; for `web`, the login name on the device. */
  readonly username: string;
  readonly address: string;
  readonly fingerprint?: string | undefined;
}

/** Reports a refused login to the operator, in the log and the metrics. */
export function reportRefusal(
  service: ServiceClient,
  attempt: LoginAttempt,
  { refused, reason }: { readonly refused: Refusal; readonly reason: string },
): void {
  const { entry, credential } = attempt;
  service.count({ entry, credential, result: refused });
  service.log.info({ ...attempt, refused, reason }, "login to a device refused");
}

/** Runs a login that the policy has admitted, and reports its result to the operator. */
export async function reportLogin<Result>(
  service: ServiceClient,
  { login, ...attempt }: LoginAttempt & { readonly login: DeviceLogin },
  logIn: () => Promise<Result | undefined>,
): Promise<Result | undefined> {
  const { device } = login.admitted;
  const begun = performance.now();
  const where = { device: device.uid, tenant: device.tenantId, session: login.uid };
  try {
    const result = await logIn();
    if (result === undefined) {
      const reason = "the device refuses the credential";
      reportRefusal(service, { ...attempt, ...where }, { refused: "password", reason });
      return undefined;
    }
    const { entry, credential } = attempt;
    const seconds = (performance.now() - begun) / 1000;
    service.count({ entry, credential, result: "accepted", seconds });
    service.log.info({ ...attempt, ...where }, "login to a device");
    return result;
  } catch (error) {
    if (login.hasEnded) {
      service.log.info({ ...attempt, ...where }, "login to a device ended before the device was reached");
    } else if (error instanceof UnreachableError) {
      reportRefusal(
        service,
        { ...attempt, ...where },
        { refused: "unreachable", reason: `the device ${error.message}` },
      );
    }
    throw error;
  }
}
