import { isNotFound } from "@gatehouse-access/sdk";

/** The answer, or undefined where the service says that there is no such object. */
export async function undefinedIfMissing<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}
