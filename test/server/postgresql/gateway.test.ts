import { once } from "node:events";
import { text } from "node:stream/consumers";
import { type Client, createClient, passwordCredential } from "@gatehouse-access/sdk";
import { pino } from "pino";
import type { ServerChannel } from "ssh2";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { WebSocket } from "ws";
import { openDatabase } from "../../../server/db/openDatabase.ts";
import { Instances as Clearing } from "../../../server/gateway/agentTunnels/Instances.ts";
import { makeMetrics } from "../../../server/metrics.ts";
import type { Services } from "../../../server/services.ts";
import { HostileDevice } from "../../gateway/HostileDevice.ts";
import { REVOCATIONS, revoke } from "../../gateway/revocations.ts";
import { type Instances, startPeers } from "../../support/instances.ts";
import { postgresqlAddress } from "../../support/postgresql/database.ts";
import { type Relay, startRelay } from "../../support/relay.ts";
import type { TestService } from "../../support/service.ts";
import {
  admitKey,
  newKey,
  openFolder,
  spawnSsh,
  ssh,
  sshPortOf,
  startAgent,
  type TestAgent,
  withoutSsh,
} from "../../support/sshFleet.ts";

const portOf = (url: string): number => Number(new URL(url).port);

/** Returns the status of the response to a WebSocket request. */
function upgraded(url: string): Promise<number> {
  const socket = new WebSocket(url.replace("http", "ws"));
  return new Promise((resolve) => {
    socket.on("error", () => {});
    socket.on("unexpected-response", (request, { statusCode = 0 }) => {
      request.destroy();
      resolve(statusCode);
    });
    socket.on("open", () => {
      socket.terminate();
      resolve(101);
    });
  });
}

describe.skipIf(withoutSsh)(`devices of several instances${withoutSsh ? ` (${withoutSsh})` : ""}`, () => {
  const folder = openFolder();
  const agents: TestAgent[] = [];
  let instances: Instances;
  let here: TestService;
  let there: TestService;
  let client: Client;
  let tenant: string;
  let namespace: string;
  let key: string;
  /** The instance that receives the agents' tunnels, and the instance at which agents pick up connections. */
  let tunnelsTo: TestService;
  let pickUpsTo: TestService;
  /** The path at which an agent picked up the last connection. */
  let lastPickUp = "";
  let balancer: Relay;

  beforeAll(async () => {
    const hostKey = newKey(folder.path, "host");
    key = newKey(folder.path, "key");
    instances = await startPeers(postgresqlAddress() ?? "", 2, {
      GATEHOUSE_SSH_HOST_KEY_FILE: hostKey,
      GATEHOUSE_SSH_REFUSALS_PER_ADDRESS: "0",
      GATEHOUSE_LOG_LEVEL: "debug",
    });
    [here, there] = instances.services as [TestService, TestService];
    [tunnelsTo, pickUpsTo] = [here, here];
    balancer = await startRelay((begin) => {
      const [, path] = /^GET (\/ssh\/revdial\S+)/.exec(begin) ?? [];
      lastPickUp = path ?? lastPickUp;
      return portOf((path ? pickUpsTo : tunnelsTo).url);
    });
    const user = await here.setup();
    client = createClient({ url: there.url, credential: passwordCredential(user) });
    const [first] = await client.getNamespaces({});
    tenant = first?.tenantId ?? "";
    namespace = first?.name ?? "";
    await admitKey({ client }, key);
  });
  afterAll(async () => {
    await Promise.all(agents.map((agent) => agent.kill()));
    await client?.close();
    balancer?.stop();
    await instances?.stop();
    folder.remove();
  });

  /** Starts an agent that opens its tunnel at the given instance. */
  async function agentAt(service: TestService, hostname: string): Promise<TestAgent> {
    tunnelsTo = service;
    const agent = await startAgent({ url: balancer.url, tenant, hostname, folder: folder.path });
    agents.push(agent);
    const { status } = await client.getDevice({ params: { uid: agent.uid } });
    if (status !== "accepted") await client.acceptDevice({ params: { uid: agent.uid } });
    return agent;
  }

  const at = (service: TestService, hostname: string) => ({
    to: `root@${namespace}.${hostname}`,
    port: sshPortOf(service),
    key,
  });
  const login = (service: TestService, hostname: string) =>
    ssh({ ...at(service, hostname), command: "cat; echo $GATEHOUSE_HOST" }, "in\n");
  const greeting = (hostname: string) => ({ code: 0, stdout: `in\n${hostname}\n`, stderr: "" });

  /** Starts an SSH login that stays open. */
  async function longLogin(service: TestService, hostname: string) {
    const child = spawnSsh({ ...at(service, hostname), command: "echo begun; exec cat" });
    const complaint = text(child.stderr);
    await once(child.stdout, "data");
    return { child, complaint, left: once(child, "close") };
  }

  it("present one host key to clients", () => {
    const keys = [here, there].map((service) =>
      service.logs().find(({ msg }) => msg === "listening for SSH"),
    );
    expect(keys[0]?.hostKey).toMatch(/^SHA256:/);
    expect(keys[1]?.hostKey).toBe(keys[0]?.hostKey);
  });

  it("accept logins at either instance, wherever their agents pick up connections", async () => {
    await agentAt(here, "edge-1");
    for (const pickUps of [here, there]) {
      pickUpsTo = pickUps;
      expect(await login(here, "edge-1")).toEqual(greeting("edge-1"));
      expect(await login(there, "edge-1")).toEqual(greeting("edge-1"));
    }
    pickUpsTo = here;
  });

  it("transfer much data in both directions from one instance to another", async () => {
    const sent = "0123456789abcde\n".repeat(100_000);
    const { code, stdout } = await ssh({ ...at(there, "edge-1"), command: "cat" }, sent);
    expect(code).toBe(0);
    expect(stdout === sent).toBe(true);
  });

  it("accept logins at either instance with transport 2", async () => {
    const exec = (channel: ServerChannel) => {
      channel.exit(7);
      channel.end("through transport 2\n");
    };
    const device = await HostileDevice.start({ service: here, client, tenant }, "multiplexed-1", {
      transport: 2,
      exec,
    });
    for (const service of [here, there]) {
      await expect
        .poll(() => ssh({ ...at(service, "multiplexed-1"), command: "true" }))
        .toMatchObject({ code: 7, stdout: "through transport 2\n" });
    }
    device.stop();
    await expect
      .poll(() => client.getDevice({ params: { uid: device.uid } }))
      .toMatchObject({ online: false });
  });

  it("have connections that can be picked up only once, and only with the announced path", async () => {
    const held = await longLogin(here, "edge-1");
    const [, instance] = /dialer=([0-9a-f]{32})/.exec(lastPickUp) ?? [];
    const paths = [
      lastPickUp,
      `/ssh/revdial?revdial.dialer=${instance}&uuid=${"0".repeat(32)}`,
      `/ssh/revdial?revdial.dialer=${"0".repeat(32)}&uuid=${"0".repeat(32)}`,
    ];
    for (const path of paths) {
      expect(await Promise.all([here, there].map(({ url }) => upgraded(url + path)))).toEqual([400, 400]);
    }
    held.child.stdin.end();
    expect((await held.left)[0]).toBe(0);
  });

  it("have sessions that can be closed at either instance", async () => {
    const held = await longLogin(here, "edge-1");
    const latest = async () => (await client.getSessions({}))[0];
    await expect.poll(async () => (await latest())?.active).toBe(true);
    const { uid = "", deviceUid = "" } = (await latest()) ?? {};
    // The API client sends its requests to the other instance.
    await client.closeSession({ params: { uid }, body: { device: deviceUid } });
    expect((await held.left)[0]).toBe(255);
    expect(await held.complaint).toContain("the session was closed");
  });

  it("have their sessions ended within two seconds by access changes at the other instance", {
    tags: ["long"],
  }, async () => {
    const { uid } = await agentAt(here, "edge-5");
    pickUpsTo = here;
    const lab = { client, service: here, sshPort: sshPortOf(here), tenant, namespace, folder: folder.path };
    for (const how of REVOCATIONS) {
      const { ms, shown } = await revoke({ ...lab, device: { uid, hostname: "edge-5" } }, how);
      console.log(`ended by ${how} after ${Math.round(ms)} ms`);
      expect(ms, how).toBeGreaterThanOrEqual(0);
      expect(ms, how).toBeLessThan(2_000);
      expect(shown, how).toMatch(/access was revoked|the session was closed/);
    }
  });

  it("are reached by their newest tunnel, even if an earlier tunnel to another instance still seems to be open", {
    tags: ["long"],
  }, async () => {
    const old = await agentAt(here, "edge-2");
    old.freeze();
    await agentAt(there, "edge-2");
    pickUpsTo = there;
    expect(await login(there, "edge-2")).toEqual(greeting("edge-2"));
    expect(await login(here, "edge-2")).toEqual(greeting("edge-2"));
    await old.kill();
    const ended = () => here.logs().some(({ msg, device }) => msg === "tunnel closed" && device === old.uid);
    await expect.poll(ended).toBe(true);
    // The device stays online after its earlier tunnel has ended.
    expect((await client.getDevice({ params: { uid: old.uid } })).online).toBe(true);
    expect(await login(here, "edge-2")).toEqual(greeting("edge-2"));
  });

  /**
   * Clears the killed instance's state from the database, as another instance does after its own signs of life have
   * succeeded for a minute.
   * @param uid a device that is connected to the running instance
   */
  async function clearLost(uid: string): Promise<void> {
    const { client: db, close } = await openDatabase({ url: instances.databaseUrl, connections: 2 });
    const services = { db, metrics: makeMetrics(), now: () => new Date() } as unknown as Services;
    const other = new Clearing(services, { schema: undefined }, () => pino({ level: "silent" }));
    const { instanceId } = await db.device.findUniqueOrThrow({ where: { uid } });
    const id = { not: instanceId ?? "" };
    await db.instance.updateMany({ where: { id }, data: { lastSeen: new Date(Date.now() - 300_000) } });
    const turned = vi.spyOn(performance, "now");
    for (let second = 0; second <= 60; second += 10) {
      turned.mockReturnValue(second * 1000 + 1);
      await other.sign();
    }
    turned.mockRestore();
    await other.stop();
    await close();
  }

  it("connect to the other instance when their instance is killed, and the sessions of the killed instance are closed", {
    tags: ["long"],
  }, async () => {
    const active = async () => {
      const sessions = await client.getSessions({});
      return sessions.filter((session) => session.active).map(({ deviceUid }) => deviceUid);
    };
    const lost = await agentAt(here, "edge-3");
    await agentAt(there, "edge-4");
    pickUpsTo = here;
    const atLost = await longLogin(here, "edge-3");
    pickUpsTo = there;
    const atKept = await longLogin(there, "edge-4");
    tunnelsTo = there;
    await here.kill();
    expect((await atLost.left)[0]).toBe(255);
    await lost.tunnels(2);
    expect(await login(there, "edge-3")).toEqual(greeting("edge-3"));
    atKept.child.stdin.end();
    expect((await atKept.left)[0]).toBe(0);
    // The session of the killed instance is still open.
    await expect.poll(active).toEqual([lost.uid]);
    await clearLost(lost.uid);
    expect(await active()).toEqual([]);
    expect(await login(there, "edge-3")).toEqual(greeting("edge-3"));
  });
});
