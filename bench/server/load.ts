import autocannon from "autocannon";

/** Requests that are open at a time, over all loads of a server. */
export const CONNECTIONS = 16;

/** Longest wait for an answer, in seconds. */
const TIMEOUT = 120;

export interface BenchRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface Load {
  readonly url: string;
  /** Requests that are open at a time. */
  readonly connections: number;
  /** Makes the next request. */
  readonly next: () => BenchRequest;
  /** How long, or how many requests. */
  readonly limit: { readonly seconds: number } | { readonly requests: number };
}

export interface Measured {
  /** Answers. */
  readonly count: number;
  /** The same for each second. */
  readonly rate: number;
  /** In milliseconds. */
  readonly p50: number;
  readonly p99: number;
}

/**
 * Sends requests over open connections, each the next as soon as its answer is there.
 * @throws Error when an answer was no success: what is measured would be something else
 */
export async function load({ url, connections, next, limit }: Load): Promise<Measured> {
  const times: number[] = [];
  const refused = new Map<number, number>();
  const result = await new Promise<autocannon.Result>((resolve, reject) => {
    const options: autocannon.Options = {
      url,
      connections,
      timeout: TIMEOUT,
      ...("seconds" in limit ? { duration: limit.seconds } : { amount: limit.requests }),
      requests: [
        {
          setupRequest: (request) => {
            const { body, headers, ...rest } = next();
            const type = body === undefined ? {} : { "content-type": "application/json" };
            return {
              ...request,
              ...rest,
              headers: { ...headers, ...type },
              ...(body !== undefined && { body }),
            };
          },
        },
      ],
    };
    const run = autocannon(options, (error, done) => (error ? reject(error) : resolve(done)));
    // Its own histogram knows whole milliseconds only.
    run.on("response", (_client, status, _bytes, milliseconds) => {
      times.push(milliseconds);
      if (status < 200 || status > 299) refused.set(status, (refused.get(status) ?? 0) + 1);
    });
  });
  if (refused.size > 0 || result.errors > 0) {
    const statuses = [...refused].map(([status, count]) => `${count} times ${status}`).join(", ");
    throw new Error(`Not all requests succeeded: ${statuses || "none refused"}, ${result.errors} errors`);
  }
  times.sort((a, b) => a - b);
  const percentile = (share: number) =>
    times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0;
  return {
    count: times.length,
    rate: times.length / result.duration,
    p50: percentile(0.5),
    p99: percentile(0.99),
  };
}
