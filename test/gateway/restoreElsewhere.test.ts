import { copyFileSync, readdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { makeDataDir } from "../support/dataFolder.ts";
import { startRelay } from "../support/relay.ts";
import { callServerCommand } from "../support/serverCommand.ts";
import { startService, type TestService } from "../support/service.ts";
import {
  acceptWithKey,
  newKey,
  openFolder,
  ssh,
  sshPortOf,
  startAgent,
  startSshService,
  UNLIMITED,
  withoutSsh,
} from "../support/sshFleet.ts";

it.skipIf(withoutSsh)(
  "a service that is restored on another host keeps its identity for SSH clients and agents",
  { tags: ["long"], timeout: 300_000 },
  async () => {
    const folder = openFolder();
    const [dataDir, otherDataDir] = [await makeDataDir(), await makeDataDir()];
    onTestFinished(async () => {
      folder.remove();
      for (const made of [dataDir, otherDataDir]) await rm(made, { recursive: true });
    });
    const fleet = await startSshService({ dataDir });
    onTestFinished(fleet.stop);
    const { service, tenant, namespace } = fleet;
    let port = Number(new URL(service.url).port);
    const moving = await startRelay(() => port);
    onTestFinished(() => moving.stop());
    const agentOf = () => startAgent({ url: moving.url, tenant, hostname: "edge-1", folder: folder.path });
    const agent = await agentOf();
    onTestFinished(() => agent.stop());
    const key = newKey(folder.path, "key");
    await acceptWithKey(fleet, agent.uid, key);
    const login = (sshPort: number, checking: string) =>
      ssh({
        to: `root@${namespace}.edge-1`,
        port: sshPort,
        key,
        command: "echo works",
        flags: [
          "-o",
          `UserKnownHostsFile=${join(folder.path, "known")}`,
          "-o",
          "HostKeyAlias=gateway",
          "-o",
          `StrictHostKeyChecking=${checking}`,
        ],
      });
    expect(await login(fleet.port, "accept-new")).toMatchObject({ code: 0, stdout: "works\n" });

    const backup = join(dataDir, "service.backup");
    expect(await callServerCommand(["backup", backup, "--data-dir", dataDir])).toMatchObject({
      code: 0,
      stderr: "",
    });
    await agent.stop();
    await service.stop();

    // The first start on the other host creates a secret, a database and a host key.
    const startElsewhere = async (): Promise<TestService> => {
      const started = await startService({ dataDir: otherDataDir, flags: ["--ssh-port", "0", ...UNLIMITED] });
      onTestFinished(async () => void (await started.stop()));
      return started;
    };
    const first = await startElsewhere();
    const changed = await login(sshPortOf(first), "yes");
    expect(changed.code).toBe(255);
    expect(changed.stderr).toContain("REMOTE HOST IDENTIFICATION HAS CHANGED");
    await first.stop();

    copyFileSync(join(dataDir, "secret"), join(otherDataDir, "secret"));
    const restored = await callServerCommand(["restore", backup, "--data-dir", otherDataDir]);
    expect(restored).toMatchObject({ code: 0, stderr: "" });
    const names = readdirSync(otherDataDir);
    expect(names.filter((name) => /^ssh_host_ed25519_key\.before-restore-/.test(name))).toHaveLength(1);

    const second = await startElsewhere();
    port = Number(new URL(second.url).port);
    // At its start, the agent enrolls, and compares the service's key with the pinned key.
    const again = await agentOf();
    onTestFinished(() => again.stop());
    expect(again.uid).toBe(agent.uid);
    expect(await login(sshPortOf(second), "yes")).toEqual({ code: 0, stdout: "works\n", stderr: "" });
    expect(again.output()).toContain('"enrolled"');
    expect(again.output()).not.toContain("differs from the pinned key");
  },
);
