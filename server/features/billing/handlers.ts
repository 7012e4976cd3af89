import type { billing, PublicOperations } from "@gatehouse-access/sdk/contract";
import type { Handlers } from "../../http/handler.ts";
import {
  attachPaymentMethod,
  createBillingPortal,
  createCustomer,
  detachPaymentMethod,
  getCustomer,
  setDefaultPaymentMethod,
} from "./customer.ts";
import { choiceDevices, getDevicesMostUsed } from "./devices.ts";
import { evaluateBilling, reportBilling } from "./evaluate.ts";
import { createSubscription, getSubscription } from "./subscription.ts";

export const billingHandlers: Handlers<
  Pick<PublicOperations, keyof typeof billing & keyof PublicOperations>
> = {
  attachPaymentMethod,
  detachPaymentMethod,
  setDefaultPaymentMethod,
  choiceDevices,
  getCustomer,
  getSubscription,
  getDevicesMostUsed,
  createCustomer,
  createSubscription,
  createBillingPortal,
  evaluateBilling,
  reportBilling,
};
