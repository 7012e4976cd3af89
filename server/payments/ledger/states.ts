/**
 * The statuses of running subscriptions. The ledger creates an invoice for a month only if the subscription is running.
 */
export const RUNNING = ["active", "past_due"];

/**
 * The statuses of subscriptions that have not ended: the running statuses, and `unpaid`. An unpaid subscription can
 * become active again.
 */
export const LIVING = [...RUNNING, "unpaid"];
