import { join } from "node:path";
import { Worker } from "node:worker_threads";
import {
  acceptWithKey,
  gatewayPidOf,
  newKey,
  openFolder,
  ssh,
  startAgent,
  startSshService,
} from "../../test/support/sshFleet.ts";
import { memoryOf } from "../server/process.ts";
import { healthyTimes, timeAt } from "./healthy.ts";
import type { SshAttack, SshOrder } from "./sshAttacker.ts";

/** The attacks on the SSH gateway, by their names. */
export const GATEWAY_CASES: Readonly<Record<SshAttack, string>> = {
  none: "no attack",
  resets: "connect, reset and reconnect from the same port, with a broken key exchange",
  requestsBeforeLogin: "global requests before login, whose answers are never read, on 4 connections",
  finiteFields: "40 key exchanges by `diffie-hellman-group18-sha512` in a second, without a login",
  curves: "1,500 key exchanges by `curve25519-sha256` in a second, without a login",
  sizes: "100,000 sizes of a terminal in a second, by one login",
  channels: "channels that are opened and closed, 30 at a time, by one login",
  pastWindow: "1.2 GB past the window of a channel, by one login",
  largeWindow: "4 channels with a window of 4 GB, on which nothing is read",
  packetSize: "channels with a maximum packet size of 0",
  pendingDevice: "lines without end on the tunnel of a device that waits to be accepted",
  recordedOutput: "output without end in a recorded session",
};

const LIST = "/api/namespaces";

/** Measurements of the service during an attack. */
export interface GatewayMeasured {
  /** Times of the healthy GET, in milliseconds; undefined: the service ended. */
  readonly get: { readonly p50: number; readonly p99: number; readonly worst: number } | undefined;
  /** Times of healthy logins, in milliseconds, and how many failed. */
  readonly login: { readonly p50: number; readonly worst: number; readonly failed: number };
  /** Most memory of the API's process and of the gateway process, in megabytes. */
  readonly api: number;
  readonly gateway: number | undefined;
}

/** Runs an attack on a service of its own, with an agent, and a healthy client of the API and of SSH beside it. */
export async function measureGateway(attack: SshAttack, seconds: number): Promise<GatewayMeasured> {
  const folder = openFolder();
  const key = newKey(folder.path, "key");
  // Limits by address as they are: the attacker has an address of its own.
  const fleet = await startSshService({
    dataDir: join(folder.path, "data"),
    flags: ["--ssh-refusals-per-address", "60", "--ssh-startups-per-address", "100"],
  });
  const { service, client, tenant, namespace, port, user } = fleet;
  const agent = await startAgent({ url: service.url, tenant, hostname: "edge-1", folder: folder.path });
  try {
    await acceptWithKey(fleet, agent.uid, key);
    await client.setSessionRecord({ params: { tenant }, body: { sessionRecord: true } });
    const { token: pending } = await client.authDevice({
      body: {
        info: { id: "debian", prettyName: "Debian", version: "v0.19.0", arch: "arm64", platform: "native" },
        hostname: "pending",
        identity: { mac: "pending" },
        publicKey: "key",
        tenantId: tenant,
      },
    });
    const { token } = await client.login({ body: user });
    const to = `root@${namespace}.edge-1`;
    await ssh({ to, port, key, command: "true" });
    await healthyTimes(service.url, LIST, token, 1);
    const order: SshOrder = { attack, port, url: service.url, to, key, pending };
    const attacker = new Worker(new URL("./sshAttacker.ts", import.meta.url), { workerData: order });
    const most = { api: 0, gateway: 0 };
    let goesOn = true;
    const watch = setInterval(() => {
      try {
        most.api = Math.max(most.api, memoryOf(service.pid));
        const gateway = gatewayPidOf(service);
        if (gateway !== undefined) most.gateway = Math.max(most.gateway, memoryOf(gateway));
      } catch {
        // It has ended, or is being restarted.
      }
    }, 100);
    const logins: number[] = [];
    let failed = 0;
    const logIn = async () => {
      while (goesOn) {
        const begun = performance.now();
        const { code } = await ssh({ to, port, key, command: "true", flags: ["-o", "ConnectTimeout=10"] });
        if (code === 0) logins.push(performance.now() - begun);
        else failed += 1;
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
    };
    const loggingIn = logIn();
    const times = await healthyTimes(service.url, LIST, token, seconds).catch(() => undefined);
    goesOn = false;
    // A login at a service that hangs would never end.
    await Promise.race([loggingIn, new Promise((resolve) => setTimeout(resolve, 15_000))]);
    clearInterval(watch);
    await attacker.terminate();
    logins.sort((one, other) => one - other);
    return {
      get: times && { p50: timeAt(times, 0.5), p99: timeAt(times, 0.99), worst: timeAt(times, 1) },
      login: { p50: timeAt(logins, 0.5), worst: timeAt(logins, 1), failed },
      api: most.api,
      gateway: most.gateway || undefined,
    };
  } finally {
    await agent.kill();
    await client.close();
    await service.kill();
    folder.remove();
  }
}
