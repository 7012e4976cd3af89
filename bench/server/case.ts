import type { BenchRequest } from "./load.ts";
import type { NamespaceName } from "./namespaces.ts";

/** What is asked of the service, over and over. */
export interface Case {
  readonly title: string;
  /**
   * The namespaces that requests are for in turn, with a token of their owner, who is one user; left out: no
   * credential is sent.
   */
  readonly namespaces?: readonly NamespaceName[];
  /** The request with the given number; numbers go on from 0 while the database lives. */
  readonly request: (index: number) => BenchRequest;
  /** Requests that go before the measured ones, so that the service has met all that they are about. */
  readonly before?: number;
  /** Asked of a server like the floor's instead of the service: what that costs without all that a service does beside. */
  readonly bare?: true;
  /** Whether each request changes an object of its namespace; if so, the audit trail must have as many changes. */
  readonly changes?: true;
  /** What is asked at the same time over half of the connections; it changes nothing. */
  readonly beside?: Case;
}

/** A request without a body, the same each time. */
export const get = (path: string) => (): BenchRequest => ({ method: "GET", path });

/** A request with a body. */
export const send = (method: BenchRequest["method"], path: string, body: unknown): BenchRequest => ({
  method,
  path,
  body: JSON.stringify(body),
});
