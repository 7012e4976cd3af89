import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import ssh2 from "ssh2";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import {
  newKey,
  openFolder,
  publicHalf,
  type SshService,
  ssh,
  startAgent,
  startSshService,
  type TestAgent,
  withoutSsh,
} from "../support/sshFleet.ts";

const EVERYTHING = { username: ".*", filter: { hostname: ".*" } };

describe.skipIf(withoutSsh)(`attacks on the gateway${withoutSsh ? ` (${withoutSsh})` : ""}`, () => {
  const folder = openFolder();
  const sockets: Socket[] = [];
  const clients: ssh2.Client[] = [];
  let fleet: SshService;
  let agent: TestAgent;
  let key: string;
  let to: string;

  const newAgent = () =>
    startAgent({
      ...{ url: fleet.service.url, tenant: fleet.tenant, hostname: "edge-1", folder: folder.path },
      flags: ["--allow-forwarding"],
    });

  beforeAll(async () => {
    key = newKey(folder.path, "key");
    fleet = await startSshService({ flags: ["--ssh-forwarding", "on"] });
    agent = await newAgent();
    await fleet.client.acceptDevice({ params: { uid: agent.uid } });
    await fleet.client.createPublicKey({ body: { name: "key", data: publicHalf(key), ...EVERYTHING } });
    to = `root@${fleet.namespace}.edge-1`;
  });
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
    for (const client of clients.splice(0)) client.destroy();
  });
  afterAll(async () => {
    await agent?.stop();
    await fleet?.stop();
    folder.remove();
  });

  /** A port that this machine has free now. */
  async function freePort(): Promise<number> {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as { readonly port: number };
    server.close();
    await once(server, "close");
    return port;
  }

  function open(options: { readonly localPort?: number } = {}): Socket {
    const socket = connect({ port: fleet.port, host: "127.0.0.1", ...options });
    socket.on("error", () => {});
    sockets.push(socket);
    return socket;
  }

  /** An SSH client that is logged in. */
  async function loggedIn(): Promise<ssh2.Client> {
    const client = new ssh2.Client();
    clients.push(client);
    client.on("error", () => {});
    client.connect({ sock: open(), username: to, privateKey: readFileSync(key) });
    await once(client, "ready");
    return client;
  }

  /** Checks that logins work, and that neither process of the service has ended. */
  async function unharmed(): Promise<void> {
    expect(await ssh({ to, port: fleet.port, key, command: "echo in" })).toMatchObject({ stdout: "in\n" });
  }

  it("survives a client that resets and reconnects from the same port with a broken key exchange", async () => {
    const localPort = await freePort();
    for (let time = 0; time < 20; time += 1) {
      const socket = open({ localPort });
      await once(socket, "connect");
      socket.write("SSH-2.0-broken\r\n");
      // An SSH packet that is no key exchange.
      socket.write(Buffer.from("0000000c0ac800000000000000000000", "hex"));
      if (time % 2 === 0) await turn();
      else await Promise.race([once(socket, "data"), once(socket, "close")]);
      socket.resetAndDestroy();
      await once(socket, "close");
    }
    await unharmed();
  });

  it("survives a device that hangs up while its client opens channels", async () => {
    for (let round = 0; round < 3; round += 1) {
      const client = await loggedIn();
      const closed = once(client, "close");
      let isOpen = true;
      client.on("close", () => {
        isOpen = false;
      });
      // Each command that has ended, however it has, is followed by another one.
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
          // The client's own end has come.
        }
      };
      for (let channel = 0; channel < 20; channel += 1) openAnother();
      await many.promise;
      const stopped = agent.stop();
      await Promise.all([closed, stopped]);
      agent = await newAgent();
      await unharmed();
    }
  });
});
