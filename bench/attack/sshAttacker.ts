// The attacks on the SSH gateway. As a worker thread, this file runs one attack.
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { isMainThread, workerData } from "node:worker_threads";
import ssh2 from "ssh2";
import { WebSocket } from "ws";

/** The input of an attacker's worker thread. */
export interface SshOrder {
  readonly attack: keyof typeof SSH_ATTACKS;
  readonly port: number;
  readonly url: string;
  /** SSH user name of the login (`login@namespace.device`), and the path of the private key that the device accepts. */
  readonly to: string;
  readonly key: string;
  /** Token of a pending device. */
  readonly pending: string;
}

/** Internal methods of the SSH library's client. Attacks use these methods to violate the protocol. */
interface Protocol {
  session(channel: number, window: number, packet: number): void;
  channelData(channel: number, data: Buffer): void;
  ping(): void;
}

const { attack, port, url, to, key, pending } = (workerData ?? {}) as SshOrder;
/** Source address of the attacker. Healthy clients do not use this address. */
const FROM = "127.0.0.66";

function open(localPort?: number): Socket {
  const socket = connect({ port, host: "127.0.0.1", localAddress: FROM, ...(localPort && { localPort }) });
  socket.on("error", () => {});
  return socket;
}

/**
 * Opens a connection and starts a key exchange. The key exchange is expensive for the server only, since the client
 * sends a random value.
 */
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
  const [cipher, mac] = ["aes128-ctr", "hmac-sha2-256-etm@openssh.com"];
  const lists = [algorithm, "ssh-ed25519", cipher, cipher, mac, mac, "none", "none", "", ""];
  const offer = Buffer.concat([Buffer.of(20), Buffer.alloc(16), ...lists.map(field), Buffer.alloc(5)]);
  socket.write("SSH-2.0-attacker\r\n");
  socket.write(packet(offer));
  socket.write(packet(Buffer.concat([Buffer.of(30), field(value)])));
  socket.on("data", () => {});
  setTimeout(() => socket.destroy(), 1000);
}

const protocolOf = (client: ssh2.Client) => (client as unknown as { readonly _protocol: Protocol })._protocol;

/** Logs in and returns the client. */
async function login() {
  const client = new ssh2.Client().on("error", () => {});
  const socket = open();
  const ended = once(client, "close").then(() => Promise.reject(new Error("closed")));
  client.connect({ sock: socket, username: to, privateKey: readFileSync(key) });
  await Promise.race([once(client, "ready"), ended]);
  return { client, protocol: protocolOf(client), socket };
}

/** Opens a channel that runs the command, or a shell without a command. */
const channelOf = (client: ssh2.Client, command?: string) =>
  new Promise<ssh2.ClientChannel>((resolve, reject) => {
    const opened: ssh2.ClientCallback = (error, channel) =>
      error ? reject(error) : resolve(channel.on("error", () => {}));
    if (command === undefined) client.shell(opened);
    else client.exec(command, opened);
  });

interface SshAttack {
  readonly title: string;
  /** Runs the attack once. The thread repeats the call until it is terminated. */
  readonly run: () => unknown;
  /** Number of concurrent runs of the attack. @default 1 */
  readonly parallel?: number;
  /** Pause between the runs, in milliseconds. The effects of a run end during this pause. @default 1 */
  readonly pause?: number;
}

let resetPort = 40_000;

/** The attacks by their names on the command line. */
export const SSH_ATTACKS = {
  none: { title: "no attack", run: () => {} },
  resets: {
    title: "connect, reset and reconnect from the same port, with a broken key exchange",
    async run() {
      const socket = open(resetPort);
      await new Promise((resolve) => socket.on("connect", resolve).on("close", resolve));
      socket.write("SSH-2.0-broken\r\n");
      socket.write(Buffer.from("0000000c0ac800000000000000000000", "hex"));
      await wait(2);
      socket.resetAndDestroy();
      resetPort += Math.random() < 0.1 ? 1 : 0;
    },
  },
  requestsBeforeLogin: {
    title: "global requests before login, with unread responses, on 4 connections",
    parallel: 4,
    pause: 50,
    async run() {
      const client = new ssh2.Client();
      const sock = open();
      const closed = new Promise((resolve) => sock.on("close", resolve));
      client.on("error", () => {});
      client.on("handshake", async () => {
        sock.pause();
        while (!sock.destroyed) {
          for (let count = 0; count < 2000; count += 1) protocolOf(client).ping();
          await wait(1);
        }
      });
      client.connect({ sock, username: to, authHandler: () => {} });
      await closed;
    },
  },
  finiteFields: {
    title: "40 key exchanges by `diffie-hellman-group18-sha512` per second, without a login",
    pause: 100,
    run() {
      const value = Buffer.concat([Buffer.of(1), Buffer.alloc(1000, 7)]);
      for (let index = 0; index < 4; index += 1) cheapExchange("diffie-hellman-group18-sha512", value);
    },
  },
  curves: {
    title: "1,500 key exchanges by `curve25519-sha256` per second, without a login",
    pause: 20,
    run() {
      for (let index = 0; index < 30; index += 1) cheapExchange("curve25519-sha256", Buffer.alloc(32, 9));
    },
  },
  sizes: {
    title: "100,000 terminal size changes per second, by one login",
    async run() {
      const { client } = await login();
      const shell = await channelOf(client);
      shell.resume();
      for (let round = 0; round < 100; round += 1) {
        for (let count = 0; count < 1000; count += 1) shell.setWindow(24, 1 + count, 0, 0);
        await wait(10);
      }
      client.end();
    },
  },
  channels: {
    title: "channels that are opened and closed, 30 at a time, by one login",
    async run() {
      const { client } = await login();
      for (let round = 0; round < 200; round += 1) {
        const channels = Array.from({ length: 30 }, () => channelOf(client, "true").catch(() => undefined));
        for (const channel of await Promise.all(channels)) channel?.resume().close();
      }
      client.end();
    },
  },
  pastWindow: {
    title: "1.2 GB past the window of a channel, by one login",
    async run() {
      const { client, protocol, socket } = await login();
      const channel = await channelOf(client, "sleep 60");
      const { outgoing } = channel as unknown as { readonly outgoing: { readonly id: number } };
      // The total size must not be a multiple of the window size. Otherwise the window would become exactly 0, and the
      // library drops data that arrives at a window of 0.
      for (let count = 0; count < 40_000 && !socket.destroyed; count += 1) {
        protocol.channelData(outgoing.id, Buffer.alloc(30_000));
        if (socket.writableLength > 4_000_000) await wait(5);
      }
      client.destroy();
    },
  },
  largeWindow: {
    title: "4 channels with a window of 4 GB, whose data the client does not read",
    parallel: 4,
    async run() {
      const { client, protocol, socket } = await login();
      const { session } = protocol;
      protocol.session = (channel, _window, packet) => session.call(protocol, channel, 2 ** 32 - 1, packet);
      await channelOf(client, "head -c 2000000000 /dev/zero");
      socket.pause();
      await wait(20_000);
      client.destroy();
    },
  },
  packetSize: {
    title: "channels with a maximum packet size of 0",
    async run() {
      const { client, protocol } = await login();
      const { session } = protocol;
      protocol.session = (channel, window) => session.call(protocol, channel, window, 0);
      try {
        const channel = await channelOf(client, "echo in");
        await once(channel.resume(), "close");
      } finally {
        client.destroy();
      }
    },
  },
  pendingDevice: {
    title: "endless lines on the tunnel of a pending device",
    pause: 100,
    async run() {
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
    },
  },
  recordedOutput: {
    title: "endless output in a recorded session",
    async run() {
      const { client } = await login();
      const shell = await channelOf(client);
      shell.write("yes an endless output of a recorded session\n");
      shell.resume();
      await new Promise<void>((resolve) => void client.on("close", () => resolve()));
    },
  },
} as const satisfies Readonly<Record<string, SshAttack>>;

if (!isMainThread) {
  process.on("uncaughtException", () => {});
  const { run, parallel = 1, pause = 1 }: SshAttack = SSH_ATTACKS[attack];
  const repeat = async () => {
    try {
      await run();
    } catch {
      // The run fails when the server closes the connection. The attack then starts the next run.
    }
    setTimeout(repeat, pause);
  };
  for (let index = 0; index < parallel; index += 1) void repeat();
}
