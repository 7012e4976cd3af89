/** The service's response. `status` is 0 if the service did not respond. */
interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** The parsed JSON body; undefined if the body is not JSON. */
  readonly body: unknown;
}

/** Calls an operation of this service, with a JSON body. */
async function call(method: string, path: string, body?: object, token?: string): Promise<Answer> {
  try {
    const response = await fetch(path, {
      method,
      headers: {
        ...(body && { "Content-Type": "application/json" }),
        ...(token !== undefined && { Authorization: `Bearer ${token}` }),
      },
      ...(body && { body: JSON.stringify(body) }),
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
    });
    const { status, headers } = response;
    return { status, headers, body: fromJson(await response.text()) };
  } catch {
    return { status: 0, headers: new Headers(), body: undefined };
  }
}

function fromJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns the `message` of an error response. Returns an empty string if the body has no message. */
function messageOf({ body }: Answer): string {
  const text = (body as { readonly message?: unknown } | null | undefined)?.message;
  return typeof text === "string" ? text : "";
}

const sentence = (text: string): string =>
  `${text.charAt(0).toUpperCase()}${text.slice(1)}${text.endsWith(".") ? "" : "."}`;

/** Returns the error text for a failed request that does not concern a field of the form. */
function reasonOf(answer: Answer): string {
  const { status, headers } = answer;
  if (status === 0) return "Cannot reach the service. Please try again.";
  if (status === 429) return `Too many attempts. Please try again ${whenAgain(headers)}.`;
  const id = headers.get("X-Request-ID");
  if (status >= 500)
    return `The service failed to process the request. Please try again, or report the request id ${id}.`;
  return messageOf(answer)
    ? sentence(messageOf(answer))
    : `The service rejected the request (status ${status}).`;
}

/** Returns the time until a retry can succeed, as the end of a sentence, for example "in a minute". */
function whenAgain(headers: Headers): string {
  const locked = Number(headers.get("X-Account-Lockout") ?? 0) * 1000;
  const limited = Date.now() + Number(headers.get("Retry-After") ?? 0) * 1000;
  const end = Math.max(locked, limited);
  return end > Date.now() ? `after ${new Date(end).toLocaleTimeString()}` : "in a minute";
}
