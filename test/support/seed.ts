import { randomInt } from "node:crypto";

/** The seed of all random tests in a run: the value of GATEHOUSE_SEED, or a new random seed. */
export const SEED = Number(process.env.GATEHOUSE_SEED ?? randomInt(2 ** 31));
