import { randomInt } from "node:crypto";

/** The seed of random tests: GATEHOUSE_SEED, or a new one. */
export const SEED = Number(process.env.GATEHOUSE_SEED ?? randomInt(2 ** 31));
