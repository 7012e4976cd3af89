import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { Readable } from "node:stream";
import { setImmediate as turn } from "node:timers/promises";
import ssh2 from "ssh2";
import { afterEach, expect, it } from "vitest";
import { newRsaKey } from "../agent/FakeGateway.ts";
import { sendSignal } from "../agent/support.ts";
import { freePort } from "../support/listening.ts";
import { gatewayPidOf, someAtATime } from "../support/sshFleet.ts";
import { HostileDevice } from "./HostileDevice.ts";
import { describeSsh } from "./SshTarget.ts";

// Adds a signal name to the SSH library in the test's process, so that the tests can send this signal. The gateway
// process has its own copy of the library, which does not define the name.
const { SIGNALS } = createRequire(import.meta.url)("ssh2/lib/protocol/constants.js") as {
  readonly SIGNALS: Record<string, number>;
};
SIGNALS.WINCH = 1;

const options = { flags: ["--ssh-forwarding", "on"], agent: { flags: ["--allow-forwarding"] } };

describeSsh("attacks on the gateway", options, (target) => {
  const sockets: Socket[] = [];
  const clients: ssh2.Client[] = [];

  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
    for (const client of clients.splice(0)) client.destroy();
  });
  function open(options: { readonly localPort?: number } = {}): Socket {
    const socket = connect({ port: target.fleet.port, host: "127.0.0.1", ...options });
    socket.on("error", () => {});
    sockets.push(socket);
    return socket;
  }

  /** Returns an SSH client that has logged in. */
  async function loggedIn(username = target.to): Promise<ssh2.Client> {
    const client = new ssh2.Client();
    clients.push(client);
    client.on("error", () => {});
    client.connect({ sock: open(), username, privateKey: readFileSync(target.key) });
    await once(client, "ready");
    return client;
  }

  /** Checks that logins still work and that the gateway process was not restarted. */
  async function unharmed(): Promise<void> {
    expect(await login()).toMatchObject({ stdout: "in\n" });
    expect(target.fleet.service.logs().filter(({ msg }) => msg.includes("gateway process"))).toEqual([]);
  }

  const login = () => target.ssh({ command: "echo in" });

  /** Resident memory of the gateway process, in megabytes. */
  const memory = () =>
    Number(
      /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${gatewayPidOf(target.fleet.service)}/status`, "utf8"))?.[1],
    ) / 1024;

  /** Returns the SSH library's internal protocol object, with which a test can violate the protocol. */
  const protocolOf = (client: ssh2.Client) =>
    (client as unknown as { readonly _protocol: ClientProtocol })._protocol;

  const exec = (client: ssh2.Client, command: string) =>
    new Promise<ssh2.ClientChannel>((resolve, reject) => {
      client.exec(command, (error, channel) =>
        error ? reject(error) : resolve(channel.on("error", () => {})),
      );
    });

  it("survives a client that resets and reconnects from the same port with a broken key exchange", async () => {
    const localPort = await freePort();
    for (let time = 0; time < 20; time += 1) {
      const socket = open({ localPort });
      await once(socket, "connect");
      socket.write("SSH-2.0-broken\r\n");
      // An SSH packet that does not belong to a key exchange.
      socket.write(Buffer.from("0000000c0ac800000000000000000000", "hex"));
      if (time % 2 === 0) await turn();
      else await Promise.race([once(socket, "data"), once(socket, "close")]);
      socket.resetAndDestroy();
      await once(socket, "close");
    }
    await unharmed();
  });

  it("survives a device that hangs up while its client opens channels", { tags: ["long"] }, async () => {
    for (let round = 0; round < 3; round += 1) {
      const client = await loggedIn();
      const closed = closeOf(client);
      let isOpen = true;
      client.on("close", () => {
        isOpen = false;
      });
      // After each command, whether it succeeded or failed, the client runs another command.
      const again = () => void setImmediate(openAnother);
      const many = Promise.withResolvers<void>();
      let count = 0;
      const ended = () => {
        count += 1;
        if (count === 50) many.resolve();
        again();
      };
      const openAnother = () => {
        if (!isOpen) return;
        try {
          client.forwardOut("127.0.0.1", 1, "127.0.0.1", 1, () => {});
          client.exec("true", (error, channel) => {
            if (error) again();
            else
              channel
                .on("close", ended)
                .on("error", () => {})
                .resume();
          });
        } catch {
          // The client has already closed its connection, so it cannot open another channel.
        }
      };
      for (let channel = 0; channel < 20; channel += 1) openAnother();
      await many.promise;
      const stopped = target.agent.stop();
      await Promise.all([closed, stopped]);
      await target.startAgent();
      await unharmed();
    }
  });

  it("refuses a client's channel with a maximum packet size of 0", async () => {
    const client = await loggedIn();
    const protocol = protocolOf(client);
    const { session } = protocol;
    protocol.session = (channel, window) => session.call(protocol, channel, window, 0);
    await expect(exec(client, "echo in")).rejects.toThrow("maximum packet size");
    await unharmed();
  });

  it("ends the connection of a device that confirms a channel with a maximum packet size of 0", async () => {
    const device = await HostileDevice.start(target.fleet, "hostile-a", {
      changeProtocol: (protocol) => {
        const { channelOpenConfirm } = protocol;
        protocol.channelOpenConfirm = (remote, local, window) =>
          channelOpenConfirm.call(protocol, remote, local, window, 0);
      },
      exec: (channel) => channel.end(),
    });
    const there = `root@${target.fleet.namespace}.${device.hostname}`;
    const { code } = await target.ssh({ to: there, command: "cat" }, "input");
    expect(code).toBe(255);
    device.stop();
    await unharmed();
  });

  it.each<[string, (protocol: ClientProtocol) => void]>([
    [
      "sends requests",
      (protocol) => {
        for (let count = 0; count < 1000; count += 1) protocol.ping();
      },
    ],
    ["exchanges keys again", (protocol) => protocol.rekey()],
  ])("ends the connection of a client that %s before it has logged in", async (_what, attack) => {
    const client = new ssh2.Client();
    clients.push(client);
    client.on("error", () => {});
    const closed = closeOf(client);
    client.once("handshake", () => attack(protocolOf(client)));
    // The auth handler returns no method, so the library never sends an authentication request by itself.
    client.connect({ sock: open(), username: target.to, authHandler: () => {} });
    await closed;
    await unharmed();
  });

  it.each(["16-sha512", "18-sha512", "14-sha256"])("offers no finite-field group: group%s", async (group) => {
    const flags = ["-o", "LogLevel=INFO", "-o", `KexAlgorithms=diffie-hellman-group${group}`];
    expect((await target.ssh({ flags })).stderr).toContain("no matching key exchange");
  });

  it("ends the connection of a client that sends past its window", async () => {
    const client = await loggedIn();
    const channel = await exec(client, "sleep 60");
    const closed = closeOf(client);
    const { outgoing } = channel as unknown as { readonly outgoing: { window: number } };
    outgoing.window = 2 ** 31;
    for (let count = 0; count < 64; count += 1) channel.write(Buffer.alloc(1024 * 1024));
    await closed;
    await unharmed();
  });

  it("ends the connection of a device that sends past its window", async () => {
    const device = await HostileDevice.start(target.fleet, "hostile-b", {
      exec: (_channel, protocol, id) => {
        for (let count = 0; count < 2048; count += 1) protocol.channelData(id, Buffer.alloc(32 * 1024));
      },
    });
    const client = new ssh2.Client();
    clients.push(client);
    client.on("error", () => {});
    const username = `root@${target.fleet.namespace}.${device.hostname}`;
    client.connect({ sock: open(), username, privateKey: readFileSync(target.key) });
    await once(client, "ready");
    const closed = closeOf(client);
    // The client reads no output, so it never sends the window adjustment that would allow the device to send more.
    await exec(client, "anything");
    await closed;
    device.stop();
    await unharmed();
  });

  it("ends the connection of a device that sends errors after the end of its output", async () => {
    const device = await HostileDevice.start(target.fleet, "hostile-c", {
      exec: (_channel, protocol, id) => {
        protocol.channelEOF(id);
        protocol.channelExtData(id, Buffer.from("late"), 1);
      },
    });
    const there = `root@${target.fleet.namespace}.${device.hostname}`;
    expect((await target.ssh({ to: there, command: "anything" })).code).toBe(255);
    device.stop();
    await unharmed();
  });

  it("closes each channel without a request exactly once", async () => {
    const client = await loggedIn();
    const protocol = protocolOf(client);
    const answers = { opened: 0, closed: 0, refused: 0 };
    const count = (name: keyof typeof answers) => () => {
      answers[name] += 1;
    };
    protocol._handlers.CHANNEL_OPEN_CONFIRMATION = count("opened");
    protocol._handlers.CHANNEL_OPEN_FAILURE = count("refused");
    protocol._handlers.CHANNEL_CLOSE = count("closed");
    for (let channel = 0; channel < 200; channel += 1) {
      protocol.session(channel, 65536, 32768);
      protocol.channelClose(channel);
      protocol.channelClose(channel);
    }
    for (let channel = 200; channel < 300; channel += 1) protocol.session(channel, 65536, 32768);
    await expect.poll(() => ({ ...answers })).toEqual({ opened: 264, closed: 200, refused: 36 });
    await unharmed();
  });

  it("buffers little for a client with a large window that reads nothing", { tags: ["long"] }, async () => {
    const client = await loggedIn();
    const protocol = protocolOf(client);
    const { session } = protocol;
    protocol.session = (channel, _window, packet) => session.call(protocol, channel, 2 ** 32 - 1, packet);
    const before = memory();
    const written = join(target.folder, "edge-1", "written");
    await exec(client, `head -c 300000000 /dev/zero; echo > ${written}`);
    sockets.at(-1)?.pause();
    for (let count = 0; count < 30; count += 1) {
      expect(await login()).toMatchObject({ stdout: "in\n" });
      expect(memory() - before).toBeLessThan(150);
    }
    expect(existsSync(written)).toBe(false);
    await unharmed();
  });

  it("keeps the last of 20,000 terminal sizes", { tags: ["long"] }, async () => {
    const client = await loggedIn();
    const shell = await new Promise<ssh2.ClientChannel>((resolve, reject) => {
      client.shell((error, channel) => (error ? reject(error) : resolve(channel.on("error", () => {}))));
    });
    shell.resume();
    for (let count = 1; count <= 20_000; count += 1) shell.setWindow(24, 1 + (count % 200), 0, 0);
    shell.setWindow(24, 777, 0, 0);
    shell.end("exit\n");
    await once(shell, "close");
    client.end();
    const sizes = async () => {
      const [latest] = await target.fleet.client.getSessions({ query: { perPage: 1 } });
      const session = await target.fleet.client.getSession({ params: { uid: latest?.uid ?? "" } });
      return JSON.stringify(session.events);
    };
    await expect.poll(sizes).toContain("777");
    await unharmed();
  });

  it("runs any number of commands on a shared connection while clients keep their input open", {
    tags: ["long"],
  }, async () => {
    const path = join(target.folder, "shared");
    const master = target.spawnSsh({ flags: ["-M", "-S", path, "-N"] });
    await expect.poll(() => existsSync(path)).toBe(true);
    const codes: unknown[] = [];
    await someAtATime([...Array(66).keys()], 4, async () => {
      const client = target.spawnSsh({ flags: ["-S", path], command: "exit 7" });
      // The client sends more input than the command reads, and still sends after the command has ended.
      Readable.from(Array(1_000).fill("y\n".repeat(1_000))).pipe(client.stdin.on("error", () => {}));
      codes.push((await once(client, "exit"))[0]);
      client.stdin.destroy();
    });
    expect(codes).toEqual(Array(66).fill(7));
    master.kill();
    await once(master, "exit");
    await unharmed();
  });

  it("ends only the command whose device reports an unknown signal", async () => {
    const device = await HostileDevice.start(target.fleet, "signals", {
      exec: (channel) => {
        channel.write("out");
        channel.exit("WINCH");
        channel.end();
      },
    });
    const client = await loggedIn(`root@${target.fleet.namespace}.${device.hostname}`);
    for (let command = 0; command < 2; command += 1) {
      const channel = await exec(client, "anything");
      const output: Buffer[] = [];
      channel.on("data", (data: Buffer) => output.push(data));
      const [code] = await once(channel, "close");
      expect([code, Buffer.concat(output).toString()]).toEqual([255, "out"]);
    }
    device.stop();
    await unharmed();
  });

  it("refuses a client's unknown signal and continues the session", async () => {
    const client = await loggedIn();
    const channel = await exec(client, "cat");
    channel.signal("WINCH");
    const closed = once(channel.resume(), "close");
    channel.end();
    expect((await closed)[0]).toBe(0);
    await unharmed();
  });

  it("forwards signals before the device has started the command, and after the end of the client's input", async () => {
    const client = await loggedIn();
    const early = await exec(client, "sleep 600");
    early.signal("TERM");
    expect((await once(early.resume(), "close")).slice(0, 2)).toEqual([null, "SIGTERM"]);
    const late = await exec(client, "trap 'exit 5' USR1; echo ready; while :; do sleep 0.02; done");
    await once(late, "data");
    const closed = once(late, "close");
    late.end();
    sendSignal(late, "USR1");
    expect((await closed)[0]).toBe(5);
  });

  it("logs why a client's connection broke off, for example for a command above 256 KiB", async () => {
    const client = await loggedIn();
    const closed = once(client, "close");
    client.exec(`: ${"x".repeat(256 * 1024)}`, () => {});
    await closed;
    await expect
      .poll(() =>
        target.fleet.service.logs().filter(({ msg }) => msg === "the SSH connection of a client failed"),
      )
      .toContainEqual(expect.objectContaining({ address: "127.0.0.1", reason: "Bad packet length" }));
  });

  /** Returns the behavior of a device that answers every command with a text. */
  const answers = (text: string) => ({
    exec: (channel: ssh2.ServerChannel) => {
      channel.write(text);
      channel.exit(0);
      channel.end();
    },
  });

  it("keeps a device's tunnel when an attacker enrolls with the device's enrollment data", async () => {
    const own = await HostileDevice.start(target.fleet, "own-x", answers("own"));
    const forged = { ...own.identity, privateKey: newRsaKey() };
    const attacker = await HostileDevice.start(target.fleet, "own-x", answers("forged"), forged);
    expect(attacker.uid).toBe(own.uid);
    await attacker.closed;
    const there = { to: `root@${target.fleet.namespace}.own-x`, command: "anything" };
    expect(await target.ssh(there)).toMatchObject({ stdout: "own" });
    const refused = { device: own.uid, reason: expect.stringMatching(/private key|hung up/) };
    const line = { msg: "takeover of a device's tunnel refused", level: 40, ...refused };
    await expect.poll(() => target.fleet.service.logs()).toContainEqual(expect.objectContaining(line));
    const query = { object: own.uid };
    const latest = async () =>
      (await target.fleet.client.getAuditTrail({ params: { tenant: target.fleet.tenant }, query }))[0];
    await expect
      .poll(latest)
      .toMatchObject({ operation: "deviceConnection", after: { takeover: "refused" } });
    own.stop();
    await unharmed();
  });

  it("lets an agent without challenges replace its own tunnel after it has proven its key", async () => {
    const first = await HostileDevice.start(target.fleet, "moved", answers("first"));
    const there = { to: `root@${target.fleet.namespace}.moved`, command: "anything" };
    expect(await target.ssh(there)).toMatchObject({ stdout: "first" });
    const second = await HostileDevice.start(target.fleet, "moved", answers("second"), first.identity);
    await first.closed;
    expect(await target.ssh(there)).toMatchObject({ stdout: "second" });
    second.stop();
    await unharmed();
  });
});

/** Resolves after a client's connection has closed, with or without an error. */
const closeOf = (client: ssh2.Client) => new Promise<void>((resolve) => void client.on("close", resolve));

/** The parts of the SSH library's client protocol that attacks use. */
interface ClientProtocol {
  readonly _handlers: Record<string, () => void>;
  session(channel: number, window: number, packet: number): void;
  channelClose(channel: number): void;
  ping(): void;
  rekey(): void;
}

describeSsh("a gateway process", { flags: ["--ssh-refusals-per-address", "4"] }, (target) => {
  const login = (from: string, command = "echo in") => target.ssh({ command, from });

  it.each([
    ["is killed", "SIGKILL"],
    // SIGSTOP stops the process. Like a process in an endless loop, it then sends no responses.
    ["hangs", "SIGSTOP"],
  ] as const)("that %s loses only its sessions, and is restarted", async (_what, signal) => {
    const first = gatewayPidOf(target.fleet.service) ?? 0;
    const open = login("127.0.1.1", "echo begun; sleep 600");
    const sessions = () => target.fleet.client.getSessions({});
    await expect.poll(async () => (await sessions()).filter(({ active }) => active).length).toBe(1);
    process.kill(first, signal);
    // The API responds while the gateway process does not.
    await expect.poll(async () => (await sessions()).filter(({ active }) => active).length).toBe(0);
    expect((await open).code).toBe(255);
    await expect.poll(() => gatewayPidOf(target.fleet.service)).not.toBe(first);
    expect(await login("127.0.1.2")).toMatchObject({ stdout: "in\n" });
  });

  it("counts a broken key exchange as a refusal", async () => {
    for (let count = 0; count < 4; count += 1) {
      const client = new ssh2.Client();
      const failed = once(client, "error").catch((error: unknown) => error);
      client.on("error", () => {});
      const sock = connect({ port: target.fleet.port, host: "127.0.0.1", localAddress: "127.0.1.9" });
      // The client rejects the host key, so the login stops during the key exchange, after the library has sent its
      // list of algorithms.
      client.connect({ sock, username: "any", hostVerifier: () => false });
      await failed;
      sock.destroy();
    }
    await expect.poll(async () => (await login("127.0.1.9")).stderr).toMatch(/closed|reset/i);
    expect(await login("127.0.1.8")).toMatchObject({ stdout: "in\n" });
  });
});
