import {
  type AnswerSource,
  type Client,
  isNotFound,
  isUnreachable,
  type NotFoundError,
  newerOperations,
  type Page,
  RequestError,
  type WitnessedAnswer,
} from "@gatehouse-access/sdk";
import { type Operation, operations } from "@gatehouse-access/sdk/contract";
import { type Message, ResourceError, said } from "../resourceError.ts";

// A response that states that an object does not exist or was deleted may come from a proxy in front of the service.
// The functions of this module check whether there is proof. The service of this project proves its own responses with
// a code or a revision in the body. On other services, a new list that does not contain the object is the proof.

/**
 * Returns true for a 404 to the request for a namespace's token. This error does not prove that an object is missing.
 * The service returns it if the namespace does not exist, or if the user is not a member of the namespace.
 */
export function isNoToken(error: unknown): boolean {
  return isNotFound(error) && error.operation === "getNamespaceToken";
}

/**
 * Returns true for a 404 to a request whose path identifies an object. The paths of lists and logins identify no
 * object, so a 404 to these paths has a different cause, such as a proxy. The 404 alone does not prove that the object
 * is missing. The object is missing if {@link isProvenMissing} returns true, or if a list does not contain it.
 */
export function isMissingObject(error: unknown): error is NotFoundError {
  return isNotFound(error) && !isNoToken(error) && identifiesObject(error.operation);
}

/**
 * Returns true for a 404 about an object if the service of this project sent the response itself. The object then does
 * not exist.
 */
export const isProvenMissing = (error: unknown): error is NotFoundError =>
  isMissingObject(error) && error.isFromService;

function identifiesObject(id: string): boolean {
  const { path } = (operations as Readonly<Record<string, Operation>>)[id] ?? {};
  const { path: newerPath } = (newerOperations as Readonly<Record<string, Operation>>)[id] ?? {};
  return path?.includes("{") ?? newerPath?.endsWith("}") ?? false;
}

/** A response that may come from a proxy. */
export interface Doubt {
  readonly method: string;
  readonly path: string;
  readonly source?: AnswerSource | undefined;
  /** The message in the response. */
  readonly message?: string | undefined;
  readonly cause?: unknown;
}

/** Returns the facts about a 404 that may come from a proxy. */
export const doubtAbout = (error: NotFoundError): Doubt => ({
  method: error.method,
  path: error.path,
  source: error.source,
  message: error.serverMessage,
  cause: error,
});

/**
 * Sends requests that delete an object. Returns undefined if the service proves that it deleted the object, or that the
 * object does not exist. Otherwise, returns the facts about the doubtful response, and the caller must check whether
 * the object exists.
 * @param send sends the requests with the given client
 */
export async function doubtOf(
  client: Client,
  send: (client: Client) => Promise<unknown>,
): Promise<Doubt | undefined> {
  const answers: WitnessedAnswer[] = [];
  try {
    await send(client.witnessing((answer) => answers.push(answer)));
  } catch (error) {
    if (!isMissingObject(error)) throw error;
    return error.isFromService ? undefined : doubtAbout(error);
  }
  return answers.find(({ isFromService }) => !isFromService);
}

const REMEDY = said`check the proxies between this machine and the service, and run the command again`;

/** Returns the sender of a doubtful response, for an error message. */
function senderText({ method, path, source, message }: Doubt): Message {
  const facts = [
    ...(source ? [`status ${source.status}`] : []),
    ...Object.entries(source?.headers ?? {}).map(([name, value]) => `${name}: ${value}`),
    ...(message === undefined ? [] : [`message: ${message}`]),
  ];
  return said`the response to ${method} ${path} (${facts.join(", ")}) has no proof that the service sent it`;
}

/**
 * Returns the error for an object that still exists, although a response states that it does not exist or was deleted.
 */
function stillExists(kind: string, key: string, doubt: Doubt): ResourceError {
  const detail = said`${key} still exists: ${senderText(doubt)}`;
  const { cause } = doubt;
  return new ResourceError(kind, { code: "doubtful_answer", detail, remedy: REMEDY }, { cause });
}

/** Returns the error for an object whose existence is unknown after a doubtful response. */
function unproven(kind: string, key: string, doubt: Doubt, cause: unknown): ResourceError {
  const why = cause instanceof Error ? cause.message : String(cause);
  const detail = said`cannot confirm that ${key} no longer exists: ${senderText(doubt)}, and no list proves it: ${why}`;
  return new ResourceError(kind, { code: "doubtful_answer", detail, remedy: REMEDY }, { cause });
}

/**
 * Checks after a doubtful response that an object no longer exists. Does nothing if there is no doubt.
 * @param exists checks whether the object exists; called only if there is a doubt
 * @throws ResourceError (`doubtful_answer`) with the facts about the response, if the object exists or if this cannot
 *   be determined
 */
export async function requireAbsent(
  kind: string,
  key: string,
  doubt: Doubt | undefined,
  exists: () => Promise<boolean>,
): Promise<void> {
  if (!doubt) return;
  const isThere = await exists().catch((error: unknown) => {
    const isDoubtful = error instanceof RequestError || isDoubtfulAnswer(error);
    throw isDoubtful && !isUnreachable(error) ? unproven(kind, key, doubt, error) : error;
  });
  if (isThere) throw stillExists(kind, key, doubt);
}

const isDoubtfulAnswer = (error: unknown): boolean =>
  error instanceof ResourceError && error.code === "doubtful_answer";

/**
 * Throws if a list is empty, unless the service reported the length 0. The page of a proxy can be an empty list, but
 * does not report a length.
 * @throws ResourceError (`doubtful_answer`)
 */
export function requireLength(kind: string, isEmpty: boolean, total: number | undefined): void {
  if (!isEmpty || total === 0) return;
  throw new ResourceError(kind, {
    code: "doubtful_answer",
    detail: said`the list of objects is empty, but the response has no header X-Total-Count: 0, so a proxy may have sent it`,
    remedy: REMEDY,
  });
}

/** A page of a list. */
export interface ListedPage<T> extends Page<T> {
  /** The number of objects on the page that the listing omits. @default 0 */
  readonly skipped?: number;
}

/** The maximum number of reads of a list. If a list changes during a read, it is read again. */
const READS = 5;

/**
 * Reads a list until it contains every object. If objects are created or deleted while the pages are read, an object
 * can move to a page that was already read. The list is then read again.
 * @param pages starts a read of the list
 * @throws ResourceError (`doubtful_answer`) if the list is empty without a reported length, or has fewer objects than
 *   its reported length
 */
export async function completeList<T>(
  kind: string,
  pages: () => AsyncIterator<ListedPage<T>>,
  keyOf: (item: T) => string,
): Promise<readonly T[]> {
  for (let read = 1; read <= READS; read += 1) {
    const items = new Map<string, T>();
    const totals = new Set<number | undefined>();
    let skipped = 0;
    const iterator = pages();
    for (let next = await iterator.next(); !next.done; next = await iterator.next()) {
      for (const item of next.value.items) items.set(keyOf(item), item);
      skipped += next.value.skipped ?? 0;
      totals.add(next.value.total);
    }
    const [total] = totals;
    const length = items.size + skipped;
    requireLength(kind, length === 0, total);
    if (totals.size === 1 && (total === undefined || length >= total)) return [...items.values()];
  }
  throw new ResourceError(kind, {
    code: "doubtful_answer",
    detail: said`the list of objects changed during each of ${READS} reads, or its pages have less objects than X-Total-Count`,
    remedy: said`run the command again`,
  });
}
