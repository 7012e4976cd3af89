import { type Refusal, UnreachableError } from "../protocol.ts";
import type { DeviceLogin } from "./DeviceLogin.ts";
import type { Service } from "./Service.ts";

/** Who wants to log in, and how. Nothing of the credential itself. */
export interface ToldLogin {
  readonly entry: "ssh" | "web";
  readonly credential: "key" | "password" | "none";
  /** The name that the client gives, or the login name on the device. */
  readonly username: string;
  readonly address: string;
  readonly fingerprint?: string | undefined;
}

/** Tells the operator of a refused login, by log and metrics. */
export function tellRefusal(
  service: Service,
  told: ToldLogin,
  { refused, reason }: { readonly refused: Refusal; readonly reason: string },
): void {
  const { entry, credential } = told;
  service.count({ entry, credential, result: refused });
  service.log.info({ ...told, refused, reason }, "login to a device refused");
}

/** Runs a login that the policy has let through, and tells the operator how it ended. */
export async function tellLogin<Result>(
  service: Service,
  { login, ...told }: ToldLogin & { readonly login: DeviceLogin },
  attempt: () => Promise<Result | undefined>,
): Promise<Result | undefined> {
  const { device } = login.admitted;
  const begun = performance.now();
  const where = { device: device.uid, tenant: device.tenantId, session: login.uid };
  try {
    const result = await attempt();
    if (result === undefined) {
      const reason = "the device refuses the credential";
      tellRefusal(service, { ...told, ...where }, { refused: "password", reason });
      return undefined;
    }
    const { entry, credential } = told;
    const seconds = (performance.now() - begun) / 1000;
    service.count({ entry, credential, result: "accepted", seconds });
    service.log.info({ ...told, ...where }, "login to a device");
    return result;
  } catch (error) {
    if (login.hasEnded) {
      service.log.info({ ...told, ...where }, "login to a device ended before the device was reached");
    } else if (error instanceof UnreachableError) {
      tellRefusal(
        service,
        { ...told, ...where },
        { refused: "unreachable", reason: `the device ${error.message}` },
      );
    }
    throw error;
  }
}
