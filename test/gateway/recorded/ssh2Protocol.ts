import { createRequire } from "node:module";
import type { ParsedKey } from "ssh2";

/** What ssh2 says and hears of one connection; its own, and of one version: see the lock file. */
export interface SshTap {
  /** Gets each message, once keys are exchanged. */
  _onPayload: (payload: Buffer) => unknown;
  _cipher: { encrypt(packet: Buffer): unknown; allocPacket(length: number): Buffer };
}

interface Protocol extends SshTap {
  readonly _kex: { readonly sessionID: Buffer };
  start(): void;
  parse(data: Buffer, from: number, to: number): void;
  cleanup(): void;
}

interface ProtocolOptions {
  readonly server: true;
  readonly ident: string;
  readonly hostKeys: Readonly<Record<string, ParsedKey>>;
  readonly offer: object;
  readonly messageHandlers: object;
  onWrite(data: Buffer): void;
  onError(error: Error): void;
}

const { resolve } = createRequire(import.meta.url);

/** The lowest layer of ssh2: it exchanges keys, encrypts, and leaves all messages to whoever uses it. */
export const { default: Protocol } = (await import(resolve("ssh2/lib/protocol/Protocol.js"))) as {
  readonly default: new (options: ProtocolOptions) => Protocol;
};
