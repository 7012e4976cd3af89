import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { MINUTE } from "@gatehouse-access/sdk/times";
import { Client } from "undici";
import { agentCall } from "../../test/support/fleet.ts";
import {
  acceptWithKey,
  gatewayPidOf,
  newKey,
  openFolder,
  ssh,
  startAgent,
  startSshService,
} from "../../test/support/sshFleet.ts";
import { memoryOf, percentile, watch } from "../measuring.ts";
import { startService } from "../processes.ts";
import { login } from "../server/measure.ts";
import { ATTACKS, LIST, type Order } from "./attacker.ts";
import type { SshOrder } from "./sshAttacker.ts";

/** The user of the healthy client. */
const HEALTHY = "fleet";
/** Maximum time for a response, in milliseconds. A service that needs more time counts as unresponsive. */
const PATIENCE = MINUTE;

/** Returns the median, the 99th percentile and the maximum of times in milliseconds. */
const spread = (times: readonly number[]): readonly [p50: number, p99: number, worst: number] => [
  percentile(times, 0.5),
  percentile(times, 0.99),
  percentile(times, 1),
];

/**
 * Returns the response times of a healthy client, in milliseconds. The client sends each request soon after the
 * previous response.
 */
async function healthyTimes(url: string, path: string, token: string, seconds: number): Promise<number[]> {
  const client = new Client(url, { headersTimeout: PATIENCE, bodyTimeout: PATIENCE });
  const headers = { authorization: `Bearer ${token}` };
  const times: number[] = [];
  const end = performance.now() + seconds * 1000;
  while (performance.now() < end) {
    const started = performance.now();
    const { statusCode, body } = await client.request({ method: "GET", path, headers });
    await body.dump();
    if (statusCode !== 200) throw new Error(`${path} returned ${statusCode}`);
    times.push(performance.now() - started);
    await sleep(5);
  }
  await client.destroy();
  return times;
}

/**
 * Runs an attack on a new service, and measures the response times of a healthy client at the same time.
 * @param url URL of the database
 */
export async function measureApi(folder: string, url: string, attack: string, seconds: number) {
  const { healthy = LIST, attacker: username = HEALTHY, env: more } = ATTACKS[attack] ?? {};
  const env = { GATEHOUSE_DATABASE_URL: url, ...more };
  const service = await startService(folder, { log: join(folder, "service.log"), env });
  try {
    const token = await login(service.url, HEALTHY);
    await healthyTimes(service.url, healthy, token, 1);
    const order: Order = { attack, url: service.url, token: await login(service.url, username) };
    const attacker = new Worker(new URL("./attacker.ts", import.meta.url), { workerData: order });
    // Waits until all connections of the attacker are open.
    await sleep(1000);
    let megabytes = 0;
    const unwatch = watch(() => {
      megabytes = Math.max(megabytes, memoryOf(service.pid));
    });
    const times = await healthyTimes(service.url, healthy, token, seconds);
    unwatch();
    const counted = once(attacker, "message");
    attacker.postMessage("count");
    const [responses] = (await counted) as [Record<string, number>];
    await attacker.terminate();
    return { times: spread(times), megabytes, responses };
  } finally {
    await service.stop();
  }
}

/**
 * Runs an attack on a new service with an agent. At the same time, measures a healthy client that uses the API and SSH.
 */
export async function measureGateway(attack: SshOrder["attack"], seconds: number) {
  const folder = openFolder();
  const key = newKey(folder.path, "key");
  // The service's limits for each address affect only the attacker, since the attacker uses a separate address.
  const fleet = await startSshService({
    dataDir: join(folder.path, "data"),
    flags: ["--ssh-refusals-per-address", "60", "--ssh-startups-per-address", "100"],
  });
  const { service, client, tenant, namespace, port, user } = fleet;
  const { url } = service;
  const agent = await startAgent({ url, tenant, hostname: "edge-1", folder: folder.path });
  try {
    await acceptWithKey(fleet, agent.uid, key);
    await client.setSessionRecord({ params: { tenant }, body: { sessionRecord: true } });
    const { token: pending } = await agentCall(client, "pending", "pending", tenant);
    const { token } = await client.login({ body: user });
    const to = `root@${namespace}.edge-1`;
    const login = { to, port, key, command: "true", flags: ["-o", "ConnectTimeout=10"] };
    await ssh(login);
    await healthyTimes(url, LIST, token, 1);
    const order: SshOrder = { attack, port, url, to, key, pending };
    const attacker = new Worker(new URL("./sshAttacker.ts", import.meta.url), { workerData: order });
    let [api, gateway] = [0, 0];
    const unwatch = watch(() => {
      api = Math.max(api, memoryOf(service.pid));
      gateway = Math.max(gateway, memoryOf(gatewayPidOf(service) ?? 0));
    });
    const logins: number[] = [];
    let [failed, isRunning] = [0, true];
    const logIn = async () => {
      while (isRunning) {
        const begun = performance.now();
        if ((await ssh(login)).code === 0) logins.push(performance.now() - begun);
        else failed += 1;
        await sleep(200);
      }
    };
    const loggingIn = logIn();
    // `times` is undefined if the service exited during the attack.
    const times = await healthyTimes(url, LIST, token, seconds).catch(() => undefined);
    isRunning = false;
    // A login to a hanging service never ends, so the wait for the login has a time limit.
    await Promise.race([loggingIn, sleep(15_000)]);
    unwatch();
    await attacker.terminate();
    const [p50, , worst] = spread(logins);
    return { get: times && spread(times), login: { p50, worst, failed }, api, gateway };
  } finally {
    await agent.kill();
    await client.close();
    await service.kill();
    folder.remove();
  }
}
