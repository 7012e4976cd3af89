import { ConfigurationError, type Environment, environmentValue } from "@gatehouse-access/sdk";
import { EnvHttpProxyAgent, RetryAgent, request } from "undici";
import { EngineError } from "../engine/index.ts";
import { packageVersion } from "../packageFile.ts";

/** The variable that holds the address of a webhook; `<variable>_FILE` names a file that does. */
const WEBHOOK_VARIABLE = "GATEHOUSE_NOTIFY_URL";

/** Milliseconds until a connection, an answer, and all attempts together have failed. */
const [CONNECT, ANSWER, DEADLINE] = [5_000, 10_000, 60_000];
/** How often a message is sent again, and the first pause between, in milliseconds; each is twice the one before. */
const [REPEATS, PAUSE] = [4, 1_000];

const PASSING = [
  ...["ECONNRESET", "ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "ENETDOWN", "ENETUNREACH", "EHOSTDOWN"],
  ...["EHOSTUNREACH", "ETIMEDOUT", "EPIPE"],
  ...["UND_ERR_SOCKET", "UND_ERR_CONNECT_TIMEOUT", "UND_ERR_HEADERS_TIMEOUT"],
];

/**
 * The address of the webhook that the environment names. It is a secret: whoever has it may write to its channel.
 * @throws ConfigurationError where there is none, or one to which nothing may be sent
 */
export function webhookAddress(env: Environment): URL {
  const text = environmentValue(env, WEBHOOK_VARIABLE);
  const refuse = (detail: string, remedy?: string) =>
    new ConfigurationError(detail, { field: [WEBHOOK_VARIABLE], remedy });
  if (text === undefined) {
    throw refuse(
      "the address that --notify sends to is missing",
      `${WEBHOOK_VARIABLE}_FILE may name a file with it`,
    );
  }
  // The text is not repeated: it is the secret.
  if (!URL.canParse(text)) throw refuse("it is not a URL", "it looks like https://host/path");
  const url = new URL(text);
  const isHere = ["localhost", "127.0.0.1", "[::1]"].includes(url.hostname);
  if (url.protocol !== "https:" && !(url.protocol === "http:" && isHere)) {
    throw refuse("it must begin with https://, unless it is on this machine");
  }
  if (url.username !== "" || url.password !== "") {
    throw refuse("it must not hold a user name or password");
  }
  return url;
}

/**
 * The proxies that an environment names, by HTTPS_PROXY, HTTP_PROXY and NO_PROXY, also in small letters; those of this
 * process are none of its.
 * @throws ConfigurationError where one is no address; the text does not repeat it, since it may hold a password
 */
export function proxiesOf(env: Environment) {
  const address = (name: string): string => {
    const [found = name] = [name.toLowerCase(), name].filter((one) => env[one]);
    const text = env[found] ?? "";
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (text !== "" && !["http:", "https:"].includes(url?.protocol ?? "")) {
      const remedy = "it looks like http://host:port";
      throw new ConfigurationError("it is not a URL", { field: [found], remedy });
    }
    return text;
  };
  return {
    httpProxy: address("HTTP_PROXY"),
    httpsProxy: address("HTTPS_PROXY"),
    noProxy: `localhost,127.0.0.1,::1,${env.no_proxy ?? env.NO_PROXY ?? ""}`,
  };
}

export interface Sending {
  readonly proxies: ReturnType<typeof proxiesOf>;
  /** Milliseconds before the second attempt. @default 1,000 */
  readonly pause?: number;
  /** Milliseconds for all attempts. @default 60,000 */
  readonly deadline?: number;
}

/**
 * Sends a message to a webhook, as JSON, until it is taken: again after answers that may be others the next moment (429,
 * 500, 502, 503, 504; `Retry-After` is heeded) and after failures of the connection, for a minute at most. Redirects are
 * not followed. A message whose answer is lost arrives twice.
 * @throws EngineError (`notify`) where it was not taken; the text names the host alone
 */
export async function sendToWebhook(
  url: URL,
  message: unknown,
  { proxies, pause = PAUSE, deadline = DEADLINE }: Sending,
): Promise<void> {
  const connections = new RetryAgent(new EnvHttpProxyAgent({ ...proxies, connect: { timeout: CONNECT } }), {
    methods: ["POST"],
    errorCodes: PASSING,
    maxRetries: REPEATS,
    minTimeout: pause,
    maxTimeout: deadline,
    throwOnError: false,
  });
  const refuse = (why: string, options?: ErrorOptions) =>
    new EngineError("notify", `${url.host} did not take the message about drift: ${why}`, options);
  try {
    const { statusCode, body } = await request(url, {
      dispatcher: connections,
      method: "POST",
      headers: { "content-type": "application/json", "user-agent": `gatehouse/${packageVersion()}` },
      body: JSON.stringify(message),
      headersTimeout: ANSWER,
      signal: AbortSignal.timeout(deadline),
    });
    // The status says all. A body that breaks off would have the message sent again.
    body.on("error", () => {}).destroy();
    if (statusCode < 200 || statusCode > 299) throw refuse(`it answered ${statusCode}`);
  } catch (error) {
    if (error instanceof EngineError) throw error;
    const { code, name } = error as { readonly code?: unknown; readonly name: string };
    throw refuse(typeof code === "string" ? code : name, { cause: error });
  } finally {
    await connections.destroy();
  }
}
