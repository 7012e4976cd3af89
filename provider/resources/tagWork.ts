import { isNotFound } from "@gatehouse-access/sdk";
import type { TenantClient } from "./connection.ts";

/** Milliseconds without any work on tags after which a tag that is missing will not come. */
const QUIET = 5_000;

/** The writes of tags in this run, for those who need a tag that is still to be made. */
export class TagWork {
  readonly #waiting = new Set<() => void>();
  #running = 0;
  #ended = 0;

  /** How many writes have ended. */
  get ended(): number {
    return this.#ended;
  }

  /** Runs work that gives tags to a device. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    this.#running += 1;
    try {
      return await work();
    } finally {
      this.#running -= 1;
      this.#ended += 1;
      for (const wake of this.#waiting) wake();
    }
  }

  /** True when more writes have ended than `seen`; false when none runs and none ends for a while. */
  async moreThan(seen: number): Promise<boolean> {
    while (this.#ended === seen) {
      await this.#endOrPause();
      if (this.#running === 0) break;
    }
    return this.#ended > seen;
  }

  #endOrPause(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, QUIET);
    this.#waiting.add(resolve);
    return promise.finally(() => {
      clearTimeout(timer);
      this.#waiting.delete(resolve);
    });
  }
}

/**
 * Sends what names tags in a filter. The service refuses tags that nothing carries (rules section 16.4), and
 * this run may still be giving them to devices: then it is sent again.
 * @throws Error naming the tags that nothing carries, when no more work on tags is under way
 */
export async function withTags<T>(
  { client, tenant, tagWork }: TenantClient,
  tags: readonly string[] | undefined,
  input: string,
  send: () => Promise<T>,
): Promise<T> {
  let cameMeanwhile = false;
  for (;;) {
    const seen = tagWork.ended;
    try {
      return await send();
    } catch (error) {
      if (!tags || !isNotFound(error)) throw error;
      const known = await client.getTags();
      const missing = tags.filter((tag) => !known.includes(tag));
      // All are known: they came since it was sent, or it is something else that was not found.
      if (missing.length === 0 && cameMeanwhile) throw error;
      cameMeanwhile = missing.length === 0;
      if (missing.length > 0 && !(await tagWork.moreThan(seen))) {
        throw new Error(
          `${input}: nothing in the namespace ${tenant} carries the tag ${missing.join(", ")}; give it to a device first, or check its spelling`,
          { cause: error },
        );
      }
    }
  }
}
