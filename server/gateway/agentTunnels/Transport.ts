import type { Duplex } from "node:stream";

/** Maximum time, in milliseconds, for an agent to accept a connection. */
export const ANSWER_TIMEOUT = 10_000;

/** The connection between a transport and its tunnel. */
export interface TunnelLink {
  /** Sends bytes as a binary message. */
  send(bytes: Buffer, sent?: (error?: Error | null) => void): void;
  /**
   * Counts received bytes and messages that carry no connection data.
   * @returns false if the agent has sent too much; the transport must then ignore all further bytes
   */
  count(bytes: number, messages: number): boolean;
  /** Closes the tunnel because the agent violated the protocol by sending the described message. */
  fail(violation: string): void;
}

/**
 * The protocol that an agent uses in its tunnel. Agents of version 0.19 use transport 1; agents since version 0.25 use
 * transport 2 by default.
 */
export interface Transport {
  readonly version: 1 | 2;
  /** Handles bytes that the agent has sent. */
  receive(bytes: Buffer): void;
  /**
   * Sends a keep-alive of the protocol. Does nothing if the protocol has no keep-alives. The pings of the WebSocket are
   * separate.
   */
  keepAlive(): void;
  /**
   * Connects to the SSH server of the agent.
   * @param session the id of the session that needs the connection
   * @returns the connection; the service can send SSH on it immediately
   * @throws UnreachableError the agent does not answer
   */
  connect(session: string): Promise<Duplex>;
  /** Ends the open connections, because the tunnel is closed. */
  closed(): void;
}
