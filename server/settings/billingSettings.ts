import { z } from "zod";
import { setting } from "./setting.ts";
import { wholeNumber } from "./values.ts";

/** Settings of a cloud instance's billing. */
export const billingSettings = {
  billingGateway: setting({
    variable: "GATEHOUSE_BILLING_GATEWAY",
    flag: "--billing-gateway",
    value: "name",
    about: "Which payment gateway a cloud instance uses; ledger: the one in the service's own database",
    allowed: "ledger",
    fallback: "ledger",
    schema: z.enum(["ledger"]),
  }),
  billingTimeout: setting({
    variable: "GATEHOUSE_BILLING_TIMEOUT",
    flag: "--billing-timeout",
    value: "seconds",
    about: "How long the payment gateway may take to answer, in seconds",
    allowed: "a whole number of seconds from 1 to 60",
    fallback: "10",
    schema: wholeNumber.refine((seconds) => seconds >= 1 && seconds <= 60),
  }),
  billingDevicePrice: setting({
    variable: "GATEHOUSE_BILLING_DEVICE_PRICE",
    flag: "--billing-device-price",
    value: "number",
    about:
      "What a subscription costs a month for each accepted device, in hundredths of the currency; invoices of " +
      "nothing count as paid",
    allowed: "a whole number from 0 to 1000000",
    fallback: "0",
    schema: wholeNumber.refine((price) => price >= 0 && price <= 1_000_000),
  }),
  billingCurrency: setting({
    variable: "GATEHOUSE_BILLING_CURRENCY",
    flag: "--billing-currency",
    value: "name",
    about: "Currency of new invoices",
    allowed: "usd or brl",
    fallback: "usd",
    schema: z.enum(["usd", "brl"]),
  }),
};
