import type { TestService } from "./service.ts";

export interface Call {
  readonly token?: string;
  readonly apiKey?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

interface Called {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers, whose shapes other tests check
  readonly body: any;
}

/** Sends a request to a service, for example `POST /api/login`. */
export async function call(
  service: Pick<TestService, "url">,
  request: string,
  more: Call = {},
): Promise<Called> {
  const [method = "", path = ""] = request.split(" ");
  const { token, apiKey, body, headers } = more;
  const response = await fetch(service.url + path, {
    method,
    headers: {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(apiKey !== undefined && { "x-api-key": apiKey }),
      ...(body !== undefined && { "content-type": "application/json" }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    body: text === "" ? undefined : JSON.parse(text),
  };
}
