import { isNotFound, NotFoundError, PermissionError } from "@gatehouse-access/sdk";
import { type Operation, operations } from "@gatehouse-access/sdk/contract";

/**
 * True for a 404 to the request for a namespace's token. It does not say that an object is gone: the service answers so
 * when there is no such namespace, but also when the user is no member of it (any more).
 */
export function isNoToken(error: unknown): boolean {
  return isNotFound(error) && error.operation === "getNamespaceToken";
}

/**
 * True for a 404 to a request that names an object: there is none. Lists and logins name none, so a 404 to them comes
 * from something else, such as a proxy.
 */
export function isMissingObject(error: unknown): error is NotFoundError {
  return isNotFound(error) && !isNoToken(error) && namesObject(error.operation);
}

function namesObject(id: string): boolean {
  const { path } = (operations as Readonly<Record<string, Operation>>)[id] ?? {};
  return path?.includes("{") ?? false;
}

/**
 * True for a 404 without a message. Some servers send most errors so; but a proxy before the service does so too, and
 * then the object may well be there.
 */
export const isSilent = ({ serverMessage }: NotFoundError): boolean => serverMessage === undefined;

/**
 * The answer, or undefined where there is no such object.
 * @param isThere called after a 404 without a message: true when the object is there all the same
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

/** True if the credential may not read something, or the service does not have it. */
export const isUnreadable = (error: unknown): error is PermissionError | NotFoundError =>
  error instanceof PermissionError || error instanceof NotFoundError;
