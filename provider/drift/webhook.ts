import {
  ConfigurationError,
  createDispatcher,
  type Environment,
  environmentValue,
  type HttpProxy,
  ProxyError,
} from "@gatehouse-access/sdk";
import { MINUTE } from "@gatehouse-access/sdk/times";
import { RetryAgent, request } from "undici";
import { EngineError } from "../engine/index.ts";
import { packageVersion } from "../packageFile.ts";

/**
 * The environment variable for the address of the webhook. `<variable>_FILE` contains the path of a file with the
 * address.
 */
const WEBHOOK_VARIABLE = "GATEHOUSE_NOTIFY_URL";

/** Time limits in milliseconds: to connect, to receive a response, and for all attempts together. */
const [CONNECT, RESPONSE, DEADLINE] = [5_000, 10_000, MINUTE];
/** Maximum number of retries, and the first retry delay in milliseconds. Each further delay is twice as long. */
const [REPEATS, PAUSE] = [4, 1_000];

/** Connection errors after which a message is sent again. */
const TRANSIENT = [
  "ERR_PROXY_UNREACHABLE",
  "ECONNRESET",
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "ENETDOWN",
  "ENETUNREACH",
  "EHOSTDOWN",
  "EHOSTUNREACH",
  "ETIMEDOUT",
  "EPIPE",
  "UND_ERR_SOCKET",
  "UND_ERR_CONNECT_TIMEOUT",
  "UND_ERR_HEADERS_TIMEOUT",
];

/**
 * Returns the address of the webhook from the environment. The address is a secret, because it permits posts to the
 * channel.
 * @throws ConfigurationError if the address is missing or not permitted
 */
export function webhookAddress(env: Environment): URL {
  const text = environmentValue(env, WEBHOOK_VARIABLE);
  const refuse = (detail: string, remedy?: string) =>
    new ConfigurationError(detail, { field: [WEBHOOK_VARIABLE], remedy });
  if (text === undefined) {
    throw refuse(
      "is not set, but --notify needs a webhook",
      `set ${WEBHOOK_VARIABLE}, or set ${WEBHOOK_VARIABLE}_FILE to the path of a file with the address`,
    );
  }
  // The errors below omit the address, since it is a secret.
  if (!URL.canParse(text)) throw refuse("is not a URL", "use the form https://host/path");
  const url = new URL(text);
  const isLocal = ["localhost", "127.0.0.1", "[::1]"].includes(url.hostname);
  if (url.protocol !== "https:" && !(url.protocol === "http:" && isLocal)) {
    throw refuse("must begin with https:// unless the host is localhost");
  }
  if (url.username !== "" || url.password !== "") {
    throw refuse("must not contain a user name or password");
  }
  return url;
}

/** Options of {@link sendToWebhook}. */
export interface Sending {
  /** The HTTP proxy; undefined to connect directly. */
  readonly proxy?: HttpProxy | undefined;
  /** The first retry delay in milliseconds. @default 1,000 */
  readonly pause?: number;
  /** Time limit of all attempts in milliseconds. @default 60,000 */
  readonly deadline?: number;
}

/**
 * Sends a message to a webhook as JSON. Retries for up to one minute after connection errors and after the statuses
 * 429, 500, 502, 503 and 504, and respects `Retry-After`. Does not follow redirects. If a response is lost, the
 * receiver may get the message twice.
 * @throws EngineError (`notify`) if the webhook did not accept the message. The error contains only the host of the
 *   address.
 */
export async function sendToWebhook(
  url: URL,
  message: unknown,
  { proxy, pause = PAUSE, deadline = DEADLINE }: Sending,
): Promise<void> {
  const dispatcher = createDispatcher(url, { proxy, connectTimeout: CONNECT });
  const connections = new RetryAgent(dispatcher, {
    methods: ["POST"],
    errorCodes: TRANSIENT,
    maxRetries: REPEATS,
    minTimeout: pause,
    maxTimeout: deadline,
    throwOnError: false,
  });
  const refuse = (why: string, options?: ConstructorParameters<typeof EngineError>[2]) =>
    new EngineError("notify", `Cannot send the drift notification to ${url.host}: ${why}`, options);
  try {
    const { statusCode, body } = await request(url, {
      dispatcher: connections,
      method: "POST",
      headers: { "content-type": "application/json", "user-agent": `gatehouse/${packageVersion()}` },
      body: JSON.stringify(message),
      headersTimeout: RESPONSE,
      signal: AbortSignal.timeout(deadline),
    });
    // The body is not needed. An error while reading the body must not cause a retry.
    body.on("error", () => {}).destroy();
    if (statusCode < 200 || statusCode > 299) throw refuse(`status ${statusCode}`);
  } catch (error) {
    if (error instanceof EngineError) throw error;
    if (error instanceof ProxyError) throw refuse(error.detail, { remedy: error.remedy, cause: error });
    const { code, name } = error as { readonly code?: unknown; readonly name: string };
    throw refuse(typeof code === "string" ? code : name, { cause: error });
  } finally {
    await connections.destroy();
  }
}
