import { once } from "node:events";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import {
  admitKey,
  newKey,
  openFolder,
  type SshService,
  spawnSsh,
  ssh,
  startSshService,
  withoutSsh,
} from "../support/sshFleet.ts";
import { YamuxParser, yamuxFrame } from "../support/YamuxPeer.ts";
import { HostileDevice } from "./HostileDevice.ts";

const BIG = "0123456789abcde\n".repeat(1_000_000);

describe.skipIf(withoutSsh)(`transports of agents${withoutSsh ? ` (${withoutSsh})` : ""}`, () => {
  const folder = openFolder();
  const devices: HostileDevice[] = [];
  let fleet: SshService;
  let key: string;

  beforeAll(async () => {
    key = newKey(folder.path, "key");
    fleet = await startSshService();
    await admitKey(fleet, key);
  });
  afterAll(async () => {
    for (const device of devices) device.stop();
    await fleet?.stop();
    folder.remove();
  });

  const deviceOf = (uid: string) => fleet.client.getDevice({ params: { uid } });
  /** The log lines about a device without a working tunnel. */
  const problems = (uid: string) =>
    fleet.service
      .logs()
      .filter(({ msg, device }) => msg === "an agent cannot keep a tunnel open" && device === uid);

  describe.each([1, 2] as const)("transport %d", (transport) => {
    let device: HostileDevice;
    const to = () => `root@${fleet.namespace}.${device.hostname}`;
    const login = (command: string, stdin = "") => ssh({ to: to(), port: fleet.port, key, command }, stdin);

    beforeAll(async () => {
      device = await HostileDevice.start(fleet, `transport-${transport}`, {
        transport,
        exec: (channel) => {
          channel.on("end", () => {
            channel.exit(3);
            channel.end();
          });
          channel.pipe(channel, { end: false });
        },
      });
      devices.push(device);
    });

    it("is shown with the device", async () => {
      await expect.poll(() => deviceOf(device.uid)).toMatchObject({ online: true, transport });
    });

    it("carries commands, their input and their exit codes", async () => {
      expect(await login("cat", "in\n")).toMatchObject({ code: 3, stdout: "in\n" });
    });

    it("carries many concurrent logins", { tags: ["long"] }, async () => {
      const logins = await Promise.all(Array.from({ length: 20 }, (_, index) => login("cat", `${index}\n`)));
      expect(logins.map(({ stdout }) => stdout)).toEqual(logins.map((_, index) => `${index}\n`));
    });

    it("carries much data in both directions at once", { tags: ["long"] }, async () => {
      const { stdout } = await login("cat", BIG);
      expect(stdout === BIG).toBe(true);
    });

    it("carries a short login while another client does not read its output", {
      tags: ["long"],
    }, async () => {
      const slow = spawnSsh({ to: to(), port: fleet.port, key, command: "cat" });
      slow.stdin.on("error", () => {});
      slow.stdin.write(BIG);
      await once(slow.stdout, "readable");
      expect(await login("cat", "in\n")).toMatchObject({ code: 3, stdout: "in\n" });
      const left = once(slow, "close");
      slow.stdout.destroy();
      slow.kill();
      await left;
    });

    it("ends the connection of a session that the service closes", async () => {
      const open = spawnSsh({ to: to(), port: fleet.port, key, command: "cat" });
      open.stdin.write("begun");
      await once(open.stdout, "data");
      const left = once(open, "close");
      const [session] = await fleet.client.getSessions({});
      await fleet.client.closeSession({ params: { uid: session?.uid ?? "" }, body: { device: device.uid } });
      expect((await left)[0]).toBe(255);
    });
  });

  it("transport 2 ends its sessions together with the tunnel, and the next tunnel accepts logins", {
    tags: ["long"],
  }, async () => {
    const [, device] = devices as [HostileDevice, HostileDevice];
    const to = `root@${fleet.namespace}.${device.hostname}`;
    const open = spawnSsh({ to, port: fleet.port, key, command: "cat" });
    const complaint = text(open.stderr);
    open.stdin.write("begun");
    await once(open.stdout, "data");
    device.tunnel.terminate();
    expect((await once(open, "close"))[0]).toBe(255);
    expect(await complaint).toContain("the device hung up");
    await expect.poll(() => deviceOf(device.uid)).toMatchObject({ online: false, transport: 2 });
    const exec = (channel: { exit(code: number): void; end(): void }) => {
      channel.exit(0);
      channel.end();
    };
    const next = await HostileDevice.start(fleet, device.hostname, { transport: 2, exec }, device.identity);
    devices.push(next);
    expect(await ssh({ to, port: fleet.port, key, command: "true" })).toMatchObject({ code: 0 });
  });

  it("logs the violation of a device once, with the version of its agent", async () => {
    const { uid, tunnel } = await HostileDevice.start(fleet, "violating-3", { transport: 2 });
    const parser = new YamuxParser();
    const received: number[] = [];
    tunnel.on("message", (data) => received.push(...parser.add(data as Buffer).map(({ type }) => type)));
    tunnel.send(yamuxFrame({ id: 2, data: Buffer.from("x") }));
    await once(tunnel, "close");
    expect(received).toEqual([3]);
    await vi.waitFor(() => expect(problems(uid)).toHaveLength(1));
    expect(problems(uid)[0]).toMatchObject({
      level: 40,
      version: "v0.19.0",
      transport: 2,
      violation: "a frame of a stream that the service has not opened",
    });
  });

  it.each([
    ["/device/connection", 404, "Use an agent version that the service supports"],
    ["/agent/connection", 400, "Configure the proxy to forward the headers Upgrade and Connection"],
  ])(
    "logs a refused request of a device for a tunnel once, with a remedy: %s",
    async (path, status, remedy) => {
      const { uid, token } = await HostileDevice.enroll(fleet, `refused-${status}`);
      const get = (authorization: string) => fetch(fleet.service.url + path, { headers: { authorization } });
      expect((await get(`Bearer ${token}`)).status).toBe(status);
      expect((await get(`Bearer ${token}`)).status).toBe(status);
      await vi.waitFor(() => expect(problems(uid)).toHaveLength(1));
      const line = problems(uid)[0];
      expect(line).toMatchObject({ version: "v0.19.0", tenant: fleet.tenant, path, status });
      expect(line?.remedy).toContain(remedy);
      expect(JSON.stringify(line)).not.toContain(token);
      expect(await deviceOf(uid)).toMatchObject({ transport: null });
      expect((await get("Bearer unknown")).status).toBe(status === 404 ? 404 : 401);
      expect(
        fleet.service.logs().filter(({ msg }) => msg === "an agent cannot keep a tunnel open"),
      ).not.toContainEqual(expect.objectContaining({ device: undefined }));
    },
  );
});
