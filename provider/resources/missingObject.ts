import { isNotFound, type NotFoundError } from "@gatehouse-access/sdk";
import { type Operation, operations } from "@gatehouse-access/sdk/contract";

/**
 * True for a 404 to the request for a token of a namespace. It says nothing of any object: the service answers a
 * user who is no member (any more) like one who asks for a namespace that does not exist.
 */
export function isNoToken(error: unknown): boolean {
  return isNotFound(error) && error.operation === "getNamespaceToken";
}

/**
 * True where the service says that there is no such object. Lists and logins name none: a 404 to them comes from
 * something before the service.
 */
export function isMissingObject(error: unknown): error is NotFoundError {
  return isNotFound(error) && !isNoToken(error) && namesObject(error.operation);
}

function namesObject(id: string): boolean {
  const { path } = (operations as Readonly<Record<string, Operation>>)[id] ?? {};
  return path?.includes("{") ?? false;
}

/**
 * True for a 404 without a word. Some servers send most errors so; but so does whatever stands before one, and then the
 * object is there as ever.
 */
export const isSilent = ({ serverMessage }: NotFoundError): boolean => serverMessage === undefined;

/**
 * The answer, or undefined where there is no such object.
 * @param isThere looks, after an answer without a word, whether the service lists the object all the same
 */
export async function undefinedIfMissing<T>(
  answer: Promise<T>,
  isThere: () => Promise<boolean>,
): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (!isMissingObject(error) || (isSilent(error) && (await isThere()))) throw error;
    return undefined;
  }
}
