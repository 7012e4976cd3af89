import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { admitKey, EVERYTHING, newKey, publicHalf } from "../support/sshFleet.ts";
import { REVOCATIONS, revoke } from "./revocations.ts";
import { describeSsh, SshTarget } from "./SshTarget.ts";

describeSsh("open sessions", {}, (target) => {
  const revocationTarget = () => ({
    ...target.fleet,
    sshPort: target.fleet.port,
    folder: target.folder,
    device: { uid: target.agent.uid, hostname: SshTarget.hostname },
  });

  it("show the fingerprint of their key, and can be filtered by this fingerprint", async () => {
    expect(await target.ssh({ command: "true" })).toMatchObject({ code: 0 });
    const [session] = await target.fleet.client.getSessions({
      query: { keyFingerprint: target.fingerprint },
    });
    expect(session).toMatchObject({ deviceUid: target.agent.uid, keyFingerprint: target.fingerprint });
    expect(await target.fleet.client.getSessions({ query: { keyFingerprint: "00:00" } })).toEqual([]);
  });

  it("continue if changes do not affect their access", async () => {
    const child = target.spawnSsh({ command: "echo begun; exec cat" });
    await once(child.stdout, "data");
    const { client } = target.fleet;
    const deny = { action: "deny", active: true, priority: 1, sourceIp: ".*" } as const;
    const rule = { ...deny, ...EVERYTHING, username: "another" };
    const { id } = await client.createFirewallRule({ body: rule });
    // Revokes the access of a different session. The session of this test must stay open.
    const { shown } = await revoke(revocationTarget(), "key");
    expect(shown).toContain("access was revoked");
    child.stdin.end("still here\n");
    expect(String((await once(child.stdout, "data"))[0])).toBe("still here\n");
    expect((await once(child, "exit"))[0]).toBe(0);
    await client.deleteFirewallRule({ params: { id } });
  });

  it("end on a shared connection with their key, even if no command runs", async () => {
    const path = join(target.folder, "shared");
    const other = newKey(target.folder, "shared-key");
    const fingerprint = await admitKey(target.fleet, other, "shared");
    const master = target.spawnSsh({ key: other, flags: ["-M", "-S", path, "-N"] });
    const ended = once(master, "exit");
    await expect.poll(() => existsSync(path)).toBe(true);
    await target.fleet.client.deletePublicKey({ params: { fingerprint } });
    await ended;
  });

  it("do not begin with a key that has expired, or whose owner is not a member", async () => {
    const { client, tenant, service } = target.fleet;
    const user = { username: "former", password: "guest of the lab", email: "former@example.org" };
    const { id: owner } = await service.createUser(user);
    await client.inviteMember({ params: { tenant }, body: { email: user.email, role: "observer" } });
    const key = newKey(target.folder, "limited");
    const settings = { name: "limited", ...EVERYTHING };
    const { fingerprint } = await client.createPublicKey({
      body: { ...settings, data: publicHalf(key), owner },
    });
    const refusals = () =>
      service.logs().flatMap(({ msg, refused }) => (msg === "login to a device refused" ? [refused] : []));
    expect(await target.ssh({ key, command: "true" })).toMatchObject({ code: 0 });
    const expire = (expiresAt: string | null) =>
      client.updatePublicKey({ params: { fingerprint }, body: { ...settings, expiresAt } });
    await expire(new Date(0).toISOString());
    expect(await target.ssh({ key, command: "true" })).toMatchObject({ code: 255 });
    await expect.poll(() => refusals().at(-1)).toBe("expired");
    await expire(null);
    expect(await target.ssh({ key, command: "true" })).toMatchObject({ code: 0 });
    await client.removeMember({ params: { tenant, uid: owner } });
    expect(await target.ssh({ key, command: "true" })).toMatchObject({ code: 255 });
    await expect.poll(() => refusals().at(-1)).toBe("owner");
  });

  it.each(REVOCATIONS.filter((how) => how !== "key"))(
    "end within two seconds after a change of their %s",
    async (how) => {
      const { ms, shown } = await revoke(revocationTarget(), how);
      console.log(`ended by ${how} after ${Math.round(ms)} ms`);
      expect(ms).toBeGreaterThanOrEqual(0);
      expect(ms).toBeLessThan(2_000);
      expect(shown).toMatch(/access was revoked|the session was closed/);
    },
  );
});
