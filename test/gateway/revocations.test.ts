import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  acceptWithKey,
  newKey,
  openFolder,
  publicHalf,
  type SshService,
  spawnSsh,
  ssh,
  startAgent,
  startSshService,
  type TestAgent,
  withoutSsh,
} from "../support/sshFleet.ts";
import { REVOCATIONS, revoke } from "./revocations.ts";

describe.skipIf(withoutSsh)(`open sessions${withoutSsh ? ` (${withoutSsh})` : ""}`, () => {
  const folder = openFolder();
  let fleet: SshService;
  let agent: TestAgent;
  let key: string;
  let fingerprint: string;
  let to: string;

  beforeAll(async () => {
    key = newKey(folder.path, "key");
    fleet = await startSshService();
    const { service, tenant } = fleet;
    agent = await startAgent({ url: service.url, tenant, hostname: "edge-1", folder: folder.path });
    fingerprint = await acceptWithKey(fleet, agent.uid, key);
    to = `root@${fleet.namespace}.edge-1`;
  });
  afterAll(async () => {
    await agent?.stop();
    await fleet?.stop();
    folder.remove();
  });

  it("have the key that opened them, and can be listed by it", async () => {
    expect(await ssh({ to, port: fleet.port, key, command: "true" })).toMatchObject({ code: 0 });
    const [found] = await fleet.client.getSessions({ query: { keyFingerprint: fingerprint } });
    expect(found).toMatchObject({ deviceUid: agent.uid, keyFingerprint: fingerprint });
    expect(await fleet.client.getSessions({ query: { keyFingerprint: "00:00" } })).toEqual([]);
  });

  it("go on while changes leave their access as it is", async () => {
    const child = spawnSsh({ to, port: fleet.port, key, command: "echo begun; exec cat" });
    await once(child.stdout, "data");
    const { client } = fleet;
    const everybody = { sourceIp: ".*", username: "another", filter: { hostname: ".*" } };
    const rule = { ...everybody, action: "deny", active: true, priority: 1 } as const;
    const { id } = await client.createFirewallRule({ body: rule });
    // Another session whose access ends with the same change of the policy.
    const { shown } = await revoke(lab(), "key");
    expect(shown).toContain("access was revoked");
    child.stdin.end("still here\n");
    expect(String((await once(child.stdout, "data"))[0])).toBe("still here\n");
    expect((await once(child, "exit"))[0]).toBe(0);
    await client.deleteFirewallRule({ params: { id } });
  });

  const lab = () => ({
    ...{ client: fleet.client, service: fleet.service, sshPort: fleet.port, folder: folder.path },
    ...{ tenant: fleet.tenant, namespace: fleet.namespace },
    device: { uid: agent.uid, hostname: "edge-1" },
  });

  it("on a shared connection end with their key, though no command runs", async () => {
    const path = join(folder.path, "shared");
    const other = newKey(folder.path, "shared-key");
    await fleet.client.createPublicKey({
      body: { name: "shared", data: publicHalf(other), username: ".*", filter: { hostname: ".*" } },
    });
    const master = spawnSsh({ to, port: fleet.port, key: other, flags: ["-M", "-S", path, "-N"] });
    const ended = once(master, "exit");
    await expect.poll(() => existsSync(path)).toBe(true);
    const keys = await fleet.client.getPublicKeys({});
    const { fingerprint: deleted = "" } = keys.find(({ name }) => name === "shared") ?? {};
    await fleet.client.deletePublicKey({ params: { fingerprint: deleted } });
    await ended;
  });

  it.each(REVOCATIONS.filter((how) => how !== "key"))(
    "end within two seconds by a change of their %s",
    async (how) => {
      const { ms, shown } = await revoke(lab(), how);
      console.log(`ended by ${how} after ${Math.round(ms)} ms`);
      expect(ms).toBeLessThan(2_000);
      expect(shown).toMatch(/access was revoked|the session was closed/);
    },
  );
});
