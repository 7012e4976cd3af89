import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import ssh2 from "ssh2";
import { createWebSocketStream, WebSocket } from "ws";
import type { SshService } from "../support/sshFleet.ts";
import { acceptSsh, YamuxPeer } from "../support/YamuxPeer.ts";

/** Methods of the SSH library's server that a hostile device misuses. */
export interface HostileProtocol {
  channelOpenConfirm(remote: number, local: number, window: number, packetSize: number): void;
  channelData(channel: number, data: Buffer): void;
  channelExtData(channel: number, data: Buffer, type: number): void;
  channelEOF(channel: number): void;
}

/** The behavior of a hostile device on the connections that it picks up. */
interface Behavior {
  /** The transport of the device's tunnel. @default 1 */
  readonly transport?: 1 | 2;
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
  readonly tunnel: WebSocket;
  readonly #sockets = new Set<WebSocket>();

  private constructor(uid: string, hostname: string, identity: DeviceIdentity, tunnel: WebSocket) {
    this.uid = uid;
    this.hostname = hostname;
    this.identity = identity;
    this.tunnel = tunnel;
    this.closed = once(tunnel, "close");
  }

  /**
   * Enrolls the device, accepts it, and opens its tunnel.
   * @param identity the identity of an accepted device; default: a new identity
   */
  static async start(
    fleet: Pick<SshService, "service" | "tenant" | "client">,
    hostname: string,
    behavior: Behavior,
    identity?: DeviceIdentity,
  ): Promise<HostileDevice> {
    const own = identity ?? newIdentity(hostname);
    const pem = own.privateKey;
    const { uid, token } = await HostileDevice.enroll(fleet, hostname, own);
    if (identity === undefined) await fleet.client.acceptDevice({ params: { uid } });
    const address = fleet.service.url.replace("http", "ws");
    const path = behavior.transport === 2 ? "/agent/connection" : "/ssh/connection";
    const tunnel = new WebSocket(address + path, { headers: { Authorization: `Bearer ${token}` } });
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
    const peer = new YamuxPeer(
      (bytes) => tunnel.send(bytes),
      (stream) => void acceptSsh(stream).then(() => server.injectSocket(stream as never)),
    );
    tunnel.on("message", (data) => {
      if (behavior.transport === 2) {
        peer.receive(data as Buffer);
        return;
      }
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

  /** Enrolls a device. Returns its token. */
  static async enroll(
    { service, tenant }: Pick<SshService, "service" | "tenant">,
    hostname: string,
    { mac, publicKey }: DeviceIdentity = newIdentity(hostname),
  ): Promise<{ readonly uid: string; readonly token: string }> {
    const enrolled = await fetch(`${service.url}/api/devices/auth`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        hostname,
        identity: { mac },
        info: { id: "linux", pretty_name: "Linux", version: "v0.19.0", arch: "amd64", platform: "docker" },
        public_key: publicKey,
        tenant_id: tenant,
      }),
    });
    return (await enrolled.json()) as { readonly uid: string; readonly token: string };
  }

  stop(): void {
    for (const socket of [this.tunnel, ...this.#sockets]) socket.terminate();
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
