import { setTimeout as wait } from "node:timers/promises";
import { Pool, request } from "undici";

/** A response that a client received through the load balancer. */
interface BalancedResponse {
  readonly status: number;
  readonly body: string;
}

interface Upstream {
  readonly url: string;
  /** Connections of clients' requests, which stay open between requests. */
  readonly pool: Pool;
  isReady: boolean;
}

/** Maximum time of a probe, in milliseconds. */
const PROBE_TIMEOUT = 10_000;
/** Interval between two probes of an upstream, in milliseconds. */
const PROBE_INTERVAL = 100;
/** Maximum number of connections to an upstream. */
const CONNECTIONS = 8;

/**
 * A load balancer over HTTP. It sends requests in turn to the upstreams whose last probe of `/readyz` returned 200, over
 * connections that it keeps open. It never repeats a request, and never closes a connection itself.
 */
export class Balancer {
  readonly #upstreams = new Set<Upstream>();
  readonly #ended = new AbortController();
  readonly #probes: Promise<void>[] = [];
  #turn = 0;

  /** Adds an upstream. The upstream receives requests after its first successful probe. */
  add(url: string): void {
    const upstream = {
      url,
      pool: new Pool(url, { connections: CONNECTIONS, pipelining: 1 }),
      isReady: false,
    };
    this.#upstreams.add(upstream);
    this.#probes.push(this.#probe(upstream));
  }

  /** Removes an upstream that has ended. */
  async remove(url: string): Promise<void> {
    for (const upstream of this.#upstreams) {
      if (upstream.url !== url) continue;
      this.#upstreams.delete(upstream);
      await upstream.pool.close();
    }
  }

  /** The addresses of the upstreams that receive requests. */
  get ready(): readonly string[] {
    return [...this.#upstreams].flatMap(({ url, isReady }) => (isReady ? [url] : []));
  }

  /**
   * Forwards a request once. Waits while no upstream is ready, as on a machine so busy that probes take seconds.
   * @throws Error the upstream refused the connection, or closed it before its response
   */
  async send(
    method: "GET" | "POST",
    path: string,
    token: string,
    content?: object,
  ): Promise<BalancedResponse> {
    const { pool } = await this.#next();
    const { statusCode, body } = await pool.request({
      method,
      path,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: content === undefined ? null : JSON.stringify(content),
    });
    return { status: statusCode, body: await body.text() };
  }

  async #next(): Promise<Upstream> {
    for (;;) {
      const ready = [...this.#upstreams].filter(({ isReady }) => isReady);
      this.#turn += 1;
      const upstream = ready[this.#turn % ready.length];
      if (upstream !== undefined) return upstream;
      await wait(PROBE_INTERVAL, undefined, { signal: this.#ended.signal });
    }
  }

  /** Ends the probes, and closes all connections. */
  async stop(): Promise<void> {
    this.#ended.abort();
    await Promise.all(this.#probes);
    for (const { url } of this.#upstreams) await this.remove(url);
  }

  async #probe(upstream: Upstream): Promise<void> {
    const { signal } = this.#ended;
    while (this.#upstreams.has(upstream) && !signal.aborted) {
      upstream.isReady = await isReady(upstream.url, signal);
      await wait(PROBE_INTERVAL, undefined, { signal }).catch(() => {});
    }
  }
}

/** Probes an upstream. An upstream that does not respond in time is not ready. */
async function isReady(url: string, ended: AbortSignal): Promise<boolean> {
  try {
    const signal = AbortSignal.any([ended, AbortSignal.timeout(PROBE_TIMEOUT)]);
    const { statusCode, body } = await request(`${url}/readyz`, { signal });
    await body.dump();
    return statusCode === 200;
  } catch {
    return false;
  }
}
