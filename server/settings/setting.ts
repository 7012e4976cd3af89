import type { z } from "zod";

/** One setting: an environment variable and, for most, a flag of `serve` that wins over it. */
export interface Setting<T extends z.ZodType = z.ZodType> {
  readonly variable: string;
  /** Missing for a secret: every user of the machine can read arguments. */
  readonly flag?: string;
  /** Name of the flag's value in the help. */
  readonly value: string;
  readonly about: string;
  /** The allowed values, as the end of the sentence "it must be …". */
  readonly allowed: string;
  readonly fallback?: string;
  /** Hides the value in messages, and allows a file that the variable `<variable>_FILE` names. @default false */
  readonly secret?: boolean;
  /** Why a value must not be given as a flag; undefined if it may. */
  readonly refusedAsFlag?: (text: string) => string | undefined;
  /** Parses the text to the value that the service uses. */
  readonly schema: T;
}

/** Gives a setting the type of its schema. */
export const setting = <T extends z.ZodType>(input: Setting<T>): Setting<T> => input;
