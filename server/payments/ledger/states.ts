/** The statuses of running subscriptions. The ledger creates invoices only for months of running subscriptions. */
export const RUNNING = ["active", "past_due"];

/**
 * The statuses of subscriptions that have not ended. These are the running statuses, and `unpaid`, which can become
 * active again.
 */
export const LIVING = [...RUNNING, "unpaid"];
