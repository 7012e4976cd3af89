/** What the service answered; status 0: nothing. */
interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** Undefined where it is no JSON. */
  readonly body: unknown;
}

/** Calls an operation of this service, with a body as JSON. */
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

/** What an error says, `{message}`; empty when it is none or has another form. */
function messageOf({ body }: Answer): string {
  const text = (body as { readonly message?: unknown } | null | undefined)?.message;
  return typeof text === "string" ? text : "";
}

const sentence = (text: string): string =>
  `${text.charAt(0).toUpperCase()}${text.slice(1)}${text.endsWith(".") ? "" : "."}`;

/** Why the service did not do it, where no field of a form is the reason. */
function reasonOf(answer: Answer): string {
  const { status, headers } = answer;
  if (status === 0) return "The service could not be reached. Please try again.";
  if (status === 429) return `There were too many attempts. Please try again ${whenAgain(headers)}.`;
  const id = headers.get("X-Request-ID");
  if (status >= 500) return `The service could not do it. Please try again, or report the request ${id}.`;
  return messageOf(answer) ? sentence(messageOf(answer)) : `The service refused it (status ${status}).`;
}

/** The end of a sentence that says when a further attempt makes sense. */
function whenAgain(headers: Headers): string {
  const locked = Number(headers.get("X-Account-Lockout") ?? 0) * 1000;
  const limited = Date.now() + Number(headers.get("Retry-After") ?? 0) * 1000;
  const end = Math.max(locked, limited);
  return end > Date.now() ? `after ${new Date(end).toLocaleTimeString()}` : "in a minute";
}
