import { randomInt } from "node:crypto";

/** The seed of a random test: the one that is given back as GATEHOUSE_SEED, else a new one. */
export const SEED = Number(process.env.GATEHOUSE_SEED ?? randomInt(2 ** 31));
