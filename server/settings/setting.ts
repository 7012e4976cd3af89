import type { z } from "zod";

/** One setting: an environment variable, and mostly a flag of `serve` that wins over it. */
export interface Setting<T extends z.ZodType = z.ZodType> {
  readonly variable: string;
  /** Left out for a secret: arguments can be read by every user of the machine. */
  readonly flag?: string;
  /** How the flag's value is called in the help. */
  readonly value: string;
  readonly about: string;
  /** What is allowed, as the end of the sentence "it must be …". */
  readonly allowed: string;
  readonly fallback?: string;
  /** The value is not repeated in messages, and may stand in a file that the variable `<variable>_FILE` names. */
  readonly secret?: boolean;
  /** Why a value must not be given as a flag; undefined when it may. */
  readonly refusedAsFlag?: (text: string) => string | undefined;
  /** From text to the value that the service uses. */
  readonly schema: T;
}

/** Gives a setting the type of its schema. */
export const setting = <T extends z.ZodType>(input: Setting<T>): Setting<T> => input;
