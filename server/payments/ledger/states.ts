/** The statuses of running subscriptions. Only the months of running subscriptions count. */
export const RUNNING = ["active", "past_due"];

/** The running statuses, and the status that can become active again. */
export const LIVING = [...RUNNING, "unpaid"];
