import type { PaymentGateway } from "../../../../server/payments/paymentGateway.ts";
import { enroll, startApp, type TestApp, type TestUser } from "../../http/testApp.ts";

/** Id of a payment method, in the format of the built-in payment gateway. */
export const VISA = "pm_visa_4242_209910_a1";
export const ELO = "pm_elo_0005_209912_b2";

/** Starts a cloud instance that stops when the test ends. */
export const startCloud = (timeout = 10_000): Promise<TestApp> =>
  startApp({ edition: "cloud", billingTimeout: timeout / 1000 });

let devices = 0;

/** Enrolls devices. Returns the uids of the devices. */
export async function fleet(app: TestApp, tenant: string, count: number): Promise<string[]> {
  const uids: string[] = [];
  for (let n = 0; n < count; n += 1) {
    devices += 1;
    const mac = `02:01:00:00:${[devices >> 8, devices & 255].map((byte) => byte.toString(16).padStart(2, "0")).join(":")}`;
    uids.push((await enroll(app, tenant, mac)).uid);
  }
  return uids;
}

/** Accepts a device. Returns the status of the response. */
export const accept = async (user: TestUser, uid = ""): Promise<number> =>
  (await user.call("acceptDevice", { params: { uid } })).status;

/** Creates a customer with a payment method and a subscription for the namespace. */
export async function subscribe(user: TestUser): Promise<number[]> {
  const customer = await user.call("createCustomer");
  const attached = await user.call("attachPaymentMethod", { body: { id: VISA } });
  const subscribed = await user.call("createSubscription");
  return [customer.status, attached.status, subscribed.status];
}

/** Counts the accepted devices of a namespace. */
export const accepted = (app: TestApp, { tenant: tenantId }: TestUser): Promise<number> =>
  app.services.db.device.count({ where: { tenantId, status: "accepted" } });

/** Replaces functions of the payment gateway. Returns a function that restores the original gateway. */
export function replacePaymentGateway(app: TestApp, changes: Partial<PaymentGateway>): () => void {
  const real = app.services.billing;
  const replaced = new Proxy(real, {
    get: (target, name) => {
      const value = Reflect.get(changes, name) ?? Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  const services = app.services as { billing: PaymentGateway };
  services.billing = replaced;
  return () => {
    services.billing = real;
  };
}
