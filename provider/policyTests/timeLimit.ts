import { counted } from "../words.ts";

/** Work has not ended within its time limit. */
export class TimeLimitError extends Error {
  override readonly name = "TimeLimitError";
}

/**
 * Waits for work to end. Work that takes too long goes on, since nothing can stop it.
 * @throws TimeLimitError when it has not ended after so many seconds
 */
export async function endedWithin<T>(seconds: number, work: T | Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_, reject) => {
    const error = new TimeLimitError(`it had not ended after ${counted(seconds, "second")}`);
    timer = setTimeout(() => reject(error), seconds * 1000);
  });
  try {
    return await Promise.race([work, limit]);
  } finally {
    clearTimeout(timer);
  }
}
