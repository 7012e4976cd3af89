import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import ssh2 from "ssh2";
import { createWebSocketStream, WebSocket } from "ws";
import type { SshService } from "../support/sshFleet.ts";

/** Methods of the SSH library's server that a hostile device misuses. */
export interface HostileProtocol {
  channelOpenConfirm(remote: number, local: number, window: number, packetSize: number): void;
  channelData(channel: number, data: Buffer): void;
  channelExtData(channel: number, data: Buffer, type: number): void;
  channelEOF(channel: number): void;
}

/** The behavior of a hostile device on the connections that it picks up. */
interface Behavior {
  /** Replaces methods of the SSH library's protocol object, so that the device violates the SSH protocol. */
  readonly changeProtocol?: (protocol: HostileProtocol) => void;
  /** Handles a client's `exec` request (a command). */
  readonly exec?: (channel: ssh2.ServerChannel, protocol: HostileProtocol, id: number) => void;
}

/** The values that identify a device to the service. */
interface DeviceIdentity {
  readonly mac: string;
  /** Public key in PEM format (PKCS#1). */
  readonly publicKey: string;
  /** Private key in PEM format (PKCS#1). It does not have to match {@link publicKey}. */
  readonly privateKey: string;
}

/** A device that accepts every login and violates the SSH protocol. The test defines the violation. */
export class HostileDevice {
  readonly uid: string;
  readonly hostname: string;
  readonly identity: DeviceIdentity;
  /** Settles after the device's tunnel has closed. */
  readonly closed: Promise<unknown>;
  readonly #tunnel: WebSocket;
  readonly #sockets = new Set<WebSocket>();

  private constructor(uid: string, hostname: string, identity: DeviceIdentity, tunnel: WebSocket) {
    this.uid = uid;
    this.hostname = hostname;
    this.identity = identity;
    this.#tunnel = tunnel;
    this.closed = once(tunnel, "close");
  }

  /**
   * Enrolls the device, accepts it, and opens its tunnel.
   * @param identity the identity of an accepted device; default: a new identity
   */
  static async start(
    fleet: SshService,
    hostname: string,
    behavior: Behavior,
    identity?: DeviceIdentity,
  ): Promise<HostileDevice> {
    const { service, tenant, client } = fleet;
    const own = identity ?? newIdentity(hostname);
    const pem = own.privateKey;
    const enrolled = await fetch(`${service.url}/api/devices/auth`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        hostname,
        identity: { mac: own.mac },
        info: { id: "linux", pretty_name: "Linux", version: "v0.19.0", arch: "amd64", platform: "docker" },
        public_key: own.publicKey,
        tenant_id: tenant,
      }),
    });
    const { uid, token } = (await enrolled.json()) as { readonly uid: string; readonly token: string };
    if (identity === undefined) await client.acceptDevice({ params: { uid } });
    const address = service.url.replace("http", "ws");
    const tunnel = new WebSocket(`${address}/ssh/connection`, {
      headers: { Authorization: `Bearer ${token}` },
    });
    const device = new HostileDevice(uid, hostname, own, tunnel);
    const server = new ssh2.Server({ hostKeys: [pem], ident: "Go" }, (connection) => {
      const protocol = (connection as unknown as { readonly _protocol: HostileProtocol })._protocol;
      behavior.changeProtocol?.(protocol);
      connection.on("error", () => {});
      connection.on("authentication", (context) => context.accept());
      connection.on("session", (accept) => {
        const session = accept();
        session.on("exec", (accepted) => {
          const channel = accepted();
          channel.on("error", () => {});
          const { outgoing } = channel as unknown as { readonly outgoing: { readonly id: number } };
          behavior.exec?.(channel, protocol, outgoing.id);
        });
      });
    });
    tunnel.on("error", () => {});
    tunnel.on("message", (data) => {
      for (const line of String(data).trimEnd().split("\n")) {
        const { command, connPath } = JSON.parse(line) as { command: string; connPath?: string };
        if (command !== "conn-ready") continue;
        const socket = new WebSocket(address + connPath);
        device.#sockets.add(socket);
        socket.on("error", () => {});
        // The gateway's first message is the HTTP request that asks for SSH on this connection. All later messages are
        // SSH data.
        socket.once("message", () => {
          const stream = createWebSocketStream(socket);
          stream.on("error", () => {});
          server.injectSocket(stream as never);
        });
      }
    });
    await once(tunnel, "open");
    return device;
  }

  stop(): void {
    for (const socket of [this.#tunnel, ...this.#sockets]) socket.terminate();
  }
}

function newIdentity(hostname: string): DeviceIdentity {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  return {
    mac: `02:00:00:00:00:${hostname.slice(-1).charCodeAt(0).toString(16).padStart(2, "0")}`,
    publicKey: publicKey.export({ type: "pkcs1", format: "pem" }).toString(),
    privateKey: privateKey.export({ type: "pkcs1", format: "pem" }).toString(),
  };
}
