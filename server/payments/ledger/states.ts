/** States of a running subscription, whose months are counted. */
export const RUNNING = ["active", "past_due"];

/** The running states, and the state that can become active again. */
export const LIVING = [...RUNNING, "unpaid"];
