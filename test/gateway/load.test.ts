import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  admitKey,
  newKey,
  openFolder,
  type SshService,
  someAtATime,
  spawnSsh,
  ssh,
  startAgent,
  startSshService,
  type TestAgent,
  withoutSsh,
} from "../support/sshFleet.ts";

const SESSIONS = 200;
const CLIENTS_PER_KIND = 100;
const LOGINS = 100;

describe.skipIf(withoutSsh)(
  `many clients${withoutSsh ? ` (${withoutSsh})` : ""}`,
  { tags: ["long"], timeout: 300_000 },
  () => {
    const folder = openFolder();
    let fleet: SshService;
    let agents: TestAgent[] = [];
    let key: string;

    beforeAll(async () => {
      key = newKey(folder.path, "key");
      fleet = await startSshService();
      const { service, client, tenant } = fleet;
      const start = (hostname: string) =>
        startAgent({ url: service.url, tenant, hostname, folder: folder.path });
      agents = await Promise.all(["edge-1", "edge-2"].map(start));
      for (const { uid } of agents) await client.acceptDevice({ params: { uid } });
      await admitKey(fleet, key);
    });
    afterAll(async () => {
      await Promise.all(agents.map((agent) => agent.stop()));
      await fleet?.stop();
      folder.remove();
    });

    const target = (index: number) => `root@${fleet.namespace}.edge-${1 + (index % 2)}`;

    it(`has ${SESSIONS} sessions at once`, async () => {
      const clients: ReturnType<typeof spawnSsh>[] = [];
      const outputs: Promise<string>[] = [];
      const indexes = Array.from({ length: SESSIONS }, (_, index) => index);
      // On a busy machine, more clients at the same time would exceed the time limit of a login.
      await someAtATime(indexes, 20, async (index) => {
        const command = "echo begun; read line; echo $line";
        const client = spawnSsh({ to: target(index), port: fleet.port, key, command });
        clients[index] = client;
        outputs[index] = text(client.stderr);
        await once(client.stdout, "readable");
      });
      const active = async () => (await fleet.client.getStats({})).activeSessions;
      await expect.poll(active, { timeout: 60_000 }).toBe(SESSIONS);
      const answers = clients.map(async (client, index) => {
        const answer = text(client.stdout);
        client.stdin.end(`line ${index}\n`);
        return answer;
      });
      expect(await Promise.all(answers)).toEqual(clients.map((_, index) => `begun\nline ${index}\n`));
      expect((await Promise.all(outputs)).join("")).toBe("");
      await expect.poll(active, { timeout: 60_000 }).toBe(0);
    });

    it(`accepts logins while ${2 * CLIENTS_PER_KIND} other clients send nothing, or stop during the handshake`, async () => {
      const silentClients = Array.from({ length: 2 * CLIENTS_PER_KIND }, (_, index) => {
        const socket = connect({ port: fleet.port, host: "127.0.0.1", localAddress: "127.0.0.9" });
        socket.on("error", () => {});
        if (index % 2 === 1) socket.write("SSH-2.0-Client\r\n");
        return socket;
      });
      await Promise.all(silentClients.map((socket) => once(socket, "connect")));
      const times: number[] = [];
      await someAtATime(
        Array.from({ length: LOGINS }, (_, index) => index),
        2,
        async (index) => {
          const begun = performance.now();
          const { stdout } = await ssh({ to: target(index), port: fleet.port, key, command: "echo in" });
          expect(stdout).toBe("in\n");
          times.push(performance.now() - begun);
        },
      );
      times.sort((a, b) => a - b);
      const p99 = times[Math.floor(0.99 * times.length)] ?? 0;
      console.log(
        `p99 of a login beside ${2 * CLIENTS_PER_KIND} silent clients: ${p99.toFixed(0)} ms, median ${times[LOGINS / 2]?.toFixed(0)} ms`,
      );
      // The documented limit is one second on a machine without other load. The test allows more time, for machines
      // with other load.
      expect(p99).toBeLessThan(5000);
      for (const socket of silentClients) socket.destroy();
    });
  },
);
