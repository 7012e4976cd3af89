/** States of a subscription for which months are counted. */
export const RUNNING = ["active", "past_due"];

/** Those, and the one that can become active again. */
export const LIVING = [...RUNNING, "unpaid"];
