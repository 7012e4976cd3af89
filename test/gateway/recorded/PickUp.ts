import { verify } from "node:crypto";
import ssh2, { type ParsedKey } from "ssh2";
import type { WebSocket } from "ws";
import type { Of, Said } from "./exchange.ts";
import { Protocol } from "./ssh2Protocol.ts";
import { decode, encode, Introduction, type Offer, type SshMessage } from "./sshMessages.ts";

interface PickUpOptions {
  readonly on: string;
  readonly socket: WebSocket;
  /** What the agent says on it. */
  readonly said: readonly Said[];
  /** The device's key (PEM). */
  readonly key: string;
  heard(what: Said): void;
  failed(why: string): void;
  /** The other side has shown its public key. */
  shown(key: Buffer): void;
}

/** A connection that the replayed agent has picked up: what is said on it, encrypted. */
export class PickUp {
  readonly on: string;
  readonly #options: PickUpOptions;
  readonly #protocol: InstanceType<typeof Protocol>;
  #ended = false;
  #begun = false;
  /** The key that the other side wants to log in with. */
  shown = Buffer.alloc(0);

  constructor(options: PickUpOptions) {
    this.on = options.on;
    this.#options = options;
    const { socket } = options;
    this.#protocol = this.#newProtocol();
    const introduction = new Introduction((what) => options.heard(what));
    socket.on("message", (data, binary) => {
      if (!binary) options.failed("a message is text, which the agent takes for the end");
      else if (this.#begun) {
        introduction.read(data as Buffer);
        this.#protocol.parse(data as Buffer, 0, (data as Buffer).length);
      } else {
        this.#begun = true;
        // The agent loses what comes after the request in the same message.
        options.heard({ head: String(data) });
      }
    });
    socket.on("close", (code) => {
      if (!this.#ended) options.heard({ close: code });
    });
  }

  /** Hangs up. */
  end(): void {
    this.#ended = true;
    this.#options.socket.terminate();
  }

  /** Says what the agent says. */
  say(said: Said): void {
    if ("ident" in said) this.#protocol.start();
    else if ("ssh" in said) this.#send(said.ssh);
    else if ("close" in said) this.end();
  }

  #newProtocol() {
    const { said, key, socket, failed } = this.#options;
    const find = <Name extends string>(name: Name) => said.find((what): what is Of<Name> => name in what);
    const { ident } = find("ident") as { readonly ident: string };
    const { kex, serverHostKey, cipher, mac } = (find("kexinit") as { readonly kexinit: Offer }).kexinit;
    const algorithms = { cipher, mac, compress: ["none"], lang: [] };
    const hostKey = ssh2.utils.parseKey(key) as ParsedKey;
    const protocol = new Protocol({
      server: true,
      ident: ident.replace("SSH-2.0-", ""),
      hostKeys: Object.fromEntries(serverHostKey.map((name) => [name, hostKey])),
      // ssh2 adds what says that it exchanges keys strictly.
      offer: {
        kex: kex.filter((name) => !name.startsWith("kex-strict")),
        serverHostKey,
        cs: algorithms,
        sc: algorithms,
      },
      messageHandlers: {},
      onWrite: (data) => socket.send(data),
      onError: (error) => failed(String(error)),
    });
    protocol._onPayload = (payload) => this.#receive(Buffer.from(payload));
    return protocol;
  }

  #receive(payload: Buffer): void {
    const ssh = decode(payload);
    if (ssh.message === "CHANNEL_WINDOW_ADJUST") return;
    if (typeof ssh.key === "string") {
      this.shown = Buffer.from(ssh.key, "latin1");
      this.#options.shown(this.shown);
    }
    if (ssh.signed === true) this.#checkSignature(payload, Buffer.from(String(ssh.signature), "latin1"));
    this.#options.heard({ ssh });
  }

  /** @param written the signature with its length, algorithm first, which ends the message */
  #checkSignature(message: Buffer, written: Buffer): void {
    const algorithmEnd = 8 + written.readUInt32BE(4);
    const digest = written.toString("latin1", 8, algorithmEnd) === "rsa-sha2-512" ? "sha512" : "sha256";
    const { sessionID } = this.#protocol._kex;
    const length = Buffer.alloc(4);
    length.writeUInt32BE(sessionID.length);
    const signed = Buffer.concat([length, sessionID, message.subarray(0, message.length - written.length)]);
    const proof = written.subarray(algorithmEnd + 4);
    if (!verify(digest, signed, pemOf(this.shown), proof)) this.#options.failed("the signature is wrong");
  }

  #send(ssh: SshMessage): void {
    // ssh2 says it by itself, after the exchange of keys.
    if (ssh.message === "EXT_INFO") return;
    const { _cipher: cipher } = this.#protocol;
    const payload = encode(ssh.key === undefined ? ssh : { ...ssh, key: this.shown.toString("latin1") });
    const packet = cipher.allocPacket(payload.length);
    payload.copy(packet, 5);
    cipher.encrypt(packet);
  }
}

/** A public key of SSH as PEM. */
export const pemOf = (key: Buffer): string => (ssh2.utils.parseKey(key) as ParsedKey).getPublicPEM();
