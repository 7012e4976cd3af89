import { type Dispatcher, request as send } from "undici";
import {
  type AnswerContext,
  bodyOf,
  errorOf,
  failureOf,
  isFromService,
  type RawAnswer,
  type ResponseHeaders,
  sourceOf,
} from "./answer.ts";
import { toWire } from "./case.ts";
import type { ClientOptions, RequestParts, WitnessedAnswer } from "./clientTypes.ts";
import type { Operation } from "./contract/index.ts";
import type { Caller } from "./credentials.ts";
import { createDispatcher } from "./dispatcher.ts";
import { ConfigurationError, RequestError, RetryAfterError, TransportError } from "./errors.ts";
import type { HttpProxy } from "./proxies.ts";
import { mayRepeat, pauseAfter, type RetryPolicy, type Timing } from "./retry.ts";
import { serviceAddress } from "./serviceAddress.ts";
import { MINUTE } from "./times.ts";

/** The defaults of {@link ClientOptions}. */
export const DEFAULTS = {
  connectTimeout: 5000,
  headersTimeout: 30_000,
  bodyTimeout: 30_000,
  connections: 16,
  maxResponseSize: 64 * 1024 * 1024,
  userAgent: "gatehouse-sdk",
};

/** The client options that a {@link Transport} uses. */
type TransportOptions = Omit<ClientOptions, "credential" | "retry" | "timing" | "serverVersion"> &
  typeof DEFAULTS & { readonly timing: Timing };

interface SendOptions {
  readonly headers: Readonly<Record<string, string>>;
  readonly retry: RetryPolicy;
  readonly signal?: AbortSignal;
  readonly token?: string;
  readonly caller: Caller;
  /** Values that errors must not contain. */
  readonly secrets: readonly string[];
  /** Called for a successful response. */
  readonly onAnswer?: ((answer: WitnessedAnswer) => void) | undefined;
}

/** A successful response with its parsed body. */
export interface Answer {
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly body: unknown;
}

/** Maximum duration of one attempt, from the request to the end of the response, in milliseconds. */
const ATTEMPT = MINUTE;

/** Returns true if a request did not reach the service. */
export const isUnreachable = (error: unknown) =>
  error instanceof TransportError && error.reason === "unreachable";

/** Sends requests to one service over a pool of connections, and repeats failed requests that are safe to repeat. */
export class Transport {
  readonly address: string;
  readonly timing: Timing;
  readonly #options: TransportOptions;
  readonly #agent: Dispatcher;
  readonly #proxy: HttpProxy | undefined;
  /** True after the first contact with the service, or with a proxy in front of the service. */
  #isReached = false;
  /** True after a successful request with an API key. All requests of a client use the same API key. */
  #isKeyAccepted = false;

  constructor(options: TransportOptions) {
    this.address = serviceAddress(options.url);
    this.timing = options.timing;
    this.#options = options;
    const { dispatcher, proxyFor, connections, connectTimeout, maxResponseSize, ca } = options;
    const target = new URL(this.address);
    this.#proxy = dispatcher ? undefined : proxyFor?.(target);
    const settings = { proxy: this.#proxy, connections, connectTimeout, maxResponseSize, ca };
    this.#agent = dispatcher ?? createDispatcher(target, settings);
  }

  /** Returns a transport to a different server, with the same options except the functions that report requests. */
  to(url: string, maxResponseSize: number): Transport {
    const { onRequest: _, onWait: __, ...options } = this.#options;
    return new Transport({ ...options, url, maxResponseSize });
  }

  /** Waits for running requests, then closes the connections. Does not close a dispatcher from the options. */
  async close(): Promise<void> {
    if (!this.#options.dispatcher) await this.#agent.close();
  }

  /**
   * Sends a request, and repeats the request until it succeeds. Stops earlier if the request is not safe to repeat, or
   * if a limit of attempts or time is reached.
   * @throws RequestError
   */
  async send(operation: Operation, request: WireRequest, options: SendOptions): Promise<Answer> {
    const { timing } = this;
    const { retry, signal } = options;
    const { onWait, stopWaiting } = this.#options;
    const begun = timing.now();
    const end = begun + (retry.deadline ?? Number.POSITIVE_INFINITY);
    let unclear = false;
    for (let attempt = 1; ; attempt += 1) {
      try {
        const left = Math.min(ATTEMPT, end - timing.now());
        return await this.#attempt(operation, request, options, { attempt, unclear, left });
      } catch (error) {
        const isFinal = attempt >= (retry.attempts ?? Number.POSITIVE_INFINITY) || stopWaiting?.aborted;
        if (!(error instanceof RequestError) || isFinal || !mayRepeat(operation, error)) throw error;
        unclear ||= error.outcome === "unknown";
        this.#isReached ||= !isUnreachable(error);
        const budget = this.#isReached ? retry.budget : Math.min(retry.budget, retry.firstContact);
        const left = Math.min(begun + budget, end) - timing.now();
        const retryAfter = error instanceof RetryAfterError ? error.retryAfter : undefined;
        const pause = pauseAfter({ attempt, left, retryAfter }, retry, timing.random);
        if (pause === undefined) throw error;
        onWait?.({ error, ms: pause, left });
        if (!(await this.#pause(pause, signal, error))) throw error;
      }
    }
  }

  /**
   * Waits before the next attempt. Returns false if `stopWaiting` aborts.
   * @throws TransportError when the caller aborts during the retry delay
   */
  async #pause(ms: number, signal: AbortSignal | undefined, last: RequestError): Promise<boolean> {
    const { stopWaiting } = this.#options;
    const ends = [signal, stopWaiting].filter((end) => end !== undefined);
    try {
      await this.timing.sleep(ms, ends.length > 0 ? AbortSignal.any(ends) : undefined);
      return true;
    } catch (cause) {
      if (signal?.aborted) throw new TransportError("the caller aborted the request", last, "aborted", last);
      if (stopWaiting?.aborted) return false;
      throw cause;
    }
  }

  async #attempt(
    operation: Operation,
    request: WireRequest,
    options: SendOptions,
    state: { readonly attempt: number; readonly unclear: boolean; readonly left: number },
  ): Promise<Answer> {
    const context: AnswerContext = {
      operation,
      path: request.path,
      address: this.address,
      proxy: this.#proxy,
      attempts: state.attempt,
      unclear: state.unclear,
      now: this.timing.now(),
      isKeyAccepted: this.#isKeyAccepted,
      isReached: this.#isReached,
      caller: options.caller,
      maxResponseSize: this.#options.maxResponseSize,
      secrets: [...options.secrets, ...request.secrets],
      ...(options.token !== undefined && { token: options.token }),
    };
    if (options.signal?.aborted) {
      throw failureOf(context, options.signal.reason, { aborted: true, sent: false });
    }
    const started = performance.now();
    let status: number | undefined;
    try {
      const raw = await this.#exchange(operation, request, options, state.left, (code) => {
        status = code;
      });
      this.#isReached = true;
      if (raw.status < 200 || raw.status > 299) throw errorOf(context, raw);
      this.#isKeyAccepted ||= options.token === undefined && operation.auth.includes("apikey");
      const body = bodyOf(context, raw);
      const { id, method } = operation;
      options.onAnswer?.({
        operation: id,
        method,
        path: request.path,
        isFromService: isFromService(raw),
        source: sourceOf(raw, context.secrets),
      });
      return { status: raw.status, headers: raw.headers, body };
    } catch (error) {
      if (error instanceof RequestError || error instanceof ConfigurationError) throw error;
      throw failureOf(context, error, { aborted: options.signal?.aborted ?? false, sent: true });
    } finally {
      this.#options.onRequest?.({
        operation: operation.id,
        method: operation.method,
        path: request.path,
        ms: performance.now() - started,
        attempt: state.attempt,
        ...(status !== undefined && { status }),
      });
    }
  }

  async #exchange(
    operation: Operation,
    request: WireRequest,
    options: SendOptions,
    left: number,
    onStatus: (status: number) => void,
  ): Promise<RawAnswer> {
    const timeout = AbortSignal.timeout(Math.max(1, Math.ceil(left)));
    const response = await send(`${this.address}${request.target}`, {
      method: operation.method,
      headers: {
        accept: "application/json",
        "user-agent": this.#options.userAgent,
        ...(request.body !== undefined && { "content-type": "application/json" }),
        ...options.headers,
      },
      body: request.body ?? null,
      dispatcher: this.#agent,
      headersTimeout: this.#options.headersTimeout,
      bodyTimeout: this.#options.bodyTimeout,
      signal: options.signal ? AbortSignal.any([options.signal, timeout]) : timeout,
    });
    onStatus(response.statusCode);
    const headers = Object.fromEntries(
      Object.entries(response.headers).map(([name, value]) => [
        name,
        Array.isArray(value) ? value.join(", ") : (value ?? ""),
      ]),
    );
    return { status: response.statusCode, headers, text: await response.body.text() };
  }
}

/** The parts of an HTTP request that depend on the values of a call. */
export interface WireRequest {
  /** Path with the values of its parameters, without the query. Logs and errors may contain the path. */
  readonly path: string;
  readonly target: string;
  readonly body?: string;
  /** Secret values in the body and the query, which messages must not contain. */
  readonly secrets: readonly string[];
}

const SECRET_KEY = /password|secret|token|code|^key$|^sign$/;

function secretsIn(value: unknown, key = ""): string[] {
  if (typeof value === "string") return SECRET_KEY.test(key) && value !== "" ? [value] : [];
  if (Array.isArray(value)) return value.flatMap((item) => secretsIn(item, key));
  if (typeof value === "object" && value !== null) {
    return Object.entries(value).flatMap(([name, item]) => secretsIn(item, name));
  }
  return [];
}

const record = (value: unknown) => (value ?? {}) as Record<string, unknown>;

/**
 * Returns an escaped path segment. Rejects "." and "..", because URL parsers resolve these segments, and the request
 * would then refer to a different object.
 */
function segment(operation: Operation, name: string, value: unknown): string {
  const text = value === undefined || value === null ? "" : String(value);
  if (text === "" || text === "." || text === "..") {
    throw new ConfigurationError(`must not be "${text}"`, {
      field: [operation.id, name],
    });
  }
  // Send colons, such as those in fingerprints, unencoded. Servers before 0.25 do not decode them, and a path may
  // contain colons (RFC 3986, section 3.3).
  return encodeURIComponent(text).replaceAll("%3A", ":");
}

/**
 * Converts the parts of a request to an HTTP request. The function does not check values, because servers differ in the
 * values that they accept.
 * @throws ConfigurationError when a path parameter is missing or cannot be part of a path
 */
export function buildRequest(operation: Operation, parts: RequestParts): WireRequest {
  const params = record(toWire(operation.params, parts.params ?? {}));
  const path = operation.path.replace(/\{([^}]+)\}/g, (_, name: string) =>
    segment(operation, name, params[name]),
  );
  const query = record(toWire(operation.query, parts.query ?? {}));
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null) search.append(name, String(value));
  }
  // Servers of version 0.19 read the tag to remove from the body (rules D17). Other servers read the tag only from the
  // path.
  const removed = operation.method === "DELETE" && params.tag !== undefined ? { tag: params.tag } : undefined;
  const body = operation.body ? toWire(operation.body, parts.body) : removed;
  return {
    path,
    target: search.size > 0 ? `${path}?${search}` : path,
    ...(body !== undefined && { body: JSON.stringify(body) }),
    secrets: [...secretsIn(body), ...secretsIn(query)],
  };
}
