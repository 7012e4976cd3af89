import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { createClient, passwordCredential } from "@gatehouse-access/sdk";
import { expect, it } from "vitest";
import { makeDataDir } from "../support/dataFolder.ts";
import { startRelay } from "../support/relay.ts";
import { startService } from "../support/service.ts";
import {
  acceptWithKey,
  CLIENT,
  isAlive,
  newKey,
  openFolder,
  scp,
  spawnSsh,
  ssh,
  sshPortOf,
  startAgent,
  startSshService,
  UNLIMITED,
  withoutSsh,
} from "../support/sshFleet.ts";
import { describeSsh, passwordSetting, type SshTarget } from "./SshTarget.ts";

const PASSWORD = "kept at the device alone";

const options = {
  env: { GATEHOUSE_LOG_LEVEL: "debug" },
  // The agent allows forwarding, so that only the gateway can refuse it.
  agent: () => ({ env: passwordSetting(PASSWORD), flags: ["--allow-forwarding"] }),
  begin: ({ fleet: { client, tenant } }: SshTarget) =>
    client.setSessionRecord({ params: { tenant }, body: { sessionRecord: true } }),
};

describeSsh("sessions of OpenSSH", options, (target) => {
  const login = (command: string) => target.ssh({ command });

  /** Waits until a client's output contains a text. Returns the output. */
  async function untilWritten(stream: NodeJS.ReadableStream, expected: string): Promise<string> {
    let seen = "";
    for await (const chunk of stream) {
      seen += String(chunk);
      if (seen.includes(expected)) return seen;
    }
    throw new Error(`not written: ${expected}; but ${seen}`);
  }

  it("are in the API with their commands and exit codes", async () => {
    expect(await login("echo out; echo err >&2; exit 7")).toEqual({
      code: 7,
      stdout: "out\n",
      stderr: "err\n",
    });
    const session = await target.session(({ active, events }) => !active && events.items.length === 2);
    expect(session).toMatchObject({
      username: "root",
      ipAddress: "127.0.0.1",
      deviceUid: target.agent.uid,
      authenticated: true,
      type: "exec",
    });
    expect(session.events.items).toMatchObject([
      { type: "exec", seat: 0, data: { command: "echo out; echo err >&2; exit 7" } },
      { type: "exit-status", seat: 0, data: { status: 7 } },
    ]);
  });

  it("record both outputs of a command, so that neither can hide a shell", async () => {
    await target.ssh({ command: "echo seen; exec sh 1>&2" }, "echo not hidden; exit 5\n");
    const session = await target.session(({ active, recorded }) => !active && recorded);
    const chunks = await target.fleet.client.getSessionRecord({ params: { uid: session.uid, seat: "0" } });
    const textOf = (expected: string) =>
      chunks
        .filter(({ stream = "stdout" }) => stream === expected)
        .map(({ message }) => message)
        .join("");
    expect([textOf("stdout"), textOf("stderr")]).toEqual(["seen\n", "not hidden\n"]);
  });

  it("carry piped input, and its end", async () => {
    const sent = "line\n".repeat(20_000);
    const { stdout, code } = await target.ssh({ command: "cat" }, sent);
    expect(code).toBe(0);
    expect(stdout === sent).toBe(true);
  });

  it("pass on both outputs completely, for any size and any speed of the client", async () => {
    const command = "seq 1 200000; seq 1 200000 >&2; seq 200001 300000; exit 4";
    const lines = (from: number, to: number) =>
      Array.from({ length: to - from + 1 }, (_, index) => `${from + index}\n`).join("");
    const { code, stdout, stderr } = await login(command);
    expect(code).toBe(4);
    expect([stdout.length, stderr.length]).toEqual([lines(1, 300_000).length, lines(1, 200_000).length]);
    expect(stdout === lines(1, 300_000) && stderr === lines(1, 200_000)).toBe(true);
  });

  it("end with the signal that ended the command", async () => {
    expect((await login("kill -TERM $$")).code).toBe(255);
  });

  it("reach no other address through the device, unless the operator allows it", async () => {
    const flags = ["-W", `127.0.0.1:${new URL(target.fleet.service.url).port}`];
    const { code, stderr } = await target.ssh({ flags });
    expect(code).toBe(255);
    expect(stderr).toContain("forwarding failed");
    // The client disconnects before the gateway has reached the device. The log must not report an error of the device.
    const { uid } = await target.session(({ active }) => !active);
    const logLines = () => target.fleet.service.logs().filter((line) => line.session === uid);
    await expect.poll(() => logLines().length).toBe(2);
    const reason = expect.stringContaining(
      "is not allowed. Add a rule to the namespace's setting ssh_forwarding",
    );
    expect(logLines()).toMatchObject([
      { msg: "a request of an SSH client was refused", reason },
      { msg: expect.not.stringContaining("refused") },
    ]);
  });

  it("end when the API closes them", async () => {
    const client = target.spawnSsh({ command: "echo begun; exec cat" });
    const errors = text(client.stderr);
    await untilWritten(client.stdout, "begun");
    const { uid } = await target.session(({ active, authenticated }) => active && authenticated);
    const closing = Date.now();
    const exited = once(client, "close");
    await target.fleet.client.closeSession({ params: { uid }, body: { device: target.agent.uid } });
    const [code] = await exited;
    console.log(`closed after ${Date.now() - closing} ms`);
    expect(Date.now() - closing).toBeLessThan(5000);
    expect(code).toBe(255);
    expect(await errors).toContain("the session was closed");
  });

  it("end with their commands when the client disconnects", async () => {
    const client = target.spawnSsh({ command: "echo $$; exec sleep 1000" });
    const pid = Number((await untilWritten(client.stdout, "\n")).trim());
    await target.session(({ active }) => active);
    client.kill("SIGKILL");
    await target.session(({ active }) => !active);
    await expect.poll(() => isAlive(pid)).toBe(false);
  });

  it("transfer files unchanged in both directions", { tags: ["long"], timeout: 120_000 }, async () => {
    const { sent, received, moved } = { sent: "sent", received: "received", moved: "moved" };
    const at = (name: string) => join(target.folder, name);
    // The device of the tests is this machine, so the agent's user must be able to write to this folder.
    chmodSync(target.folder, 0o777);
    execFileSync("dd", ["if=/dev/urandom", `of=${at(sent)}`, "bs=1M", "count=100", "status=none"]);
    const batch = at("batch");
    writeFileSync(batch, `put ${at(sent)} ${at(moved)}\nget ${at(moved)} ${at(received)}\nrm ${at(moved)}\n`);
    const args = ["-F", "none", "-b", batch, "-P", String(target.fleet.port), "-i", target.key, ...CLIENT];
    execFileSync("sftp", [...args, `${target.to}@127.0.0.1`], { stdio: "ignore" });
    execFileSync("cmp", [at(sent), at(received)]);
    chmodSync(target.folder, 0o711);
  });

  it("copy files with scp, with its exit code", async () => {
    chmodSync(target.folder, 0o777);
    const [sent, there, received] = ["sent.scp", "there.scp", "received.scp"].map((name) =>
      join(target.folder, name),
    ) as [string, string, string];
    writeFileSync(sent, Buffer.alloc(5_000_001, "all of the bytes "), { mode: 0o644 });
    const copy = (from: string, into: string) =>
      scp({ port: target.fleet.port, key: target.key }, from, into);
    expect(await copy(sent, `${target.to}@127.0.0.1:${there}`)).toBe(0);
    expect(await copy(`${target.to}@127.0.0.1:${there}`, received)).toBe(0);
    expect(await copy(`${target.to}@127.0.0.1:${there}.missing`, received)).toBe(1);
    execFileSync("cmp", [sent, received]);
    chmodSync(target.folder, 0o711);
  });

  it("start when the device accepts the password", { tags: ["long"] }, async () => {
    const askpass = join(target.folder, "askpass");
    writeFileSync(askpass, '#!/bin/sh\nprintf "%s\\n" "$PASSWORD_OF_TEST"\n', { mode: 0o755 });
    const withPassword = async (password: string, flags: string[] = []) => {
      const client = spawnSsh({
        to: target.to,
        port: target.fleet.port,
        command: "echo in",
        flags: ["-o", "NumberOfPasswordPrompts=1", ...flags],
        env: {
          SSH_ASKPASS: askpass,
          SSH_ASKPASS_REQUIRE: "force",
          PASSWORD_OF_TEST: password,
          DISPLAY: ":0",
        },
      });
      client.stdin.end();
      client.stderr.resume();
      const [output, [code]] = await Promise.all([text(client.stdout), once(client, "close")]);
      return { output, code };
    };
    expect(await withPassword(PASSWORD)).toEqual({ output: "in\n", code: 0 });
    await target.session(({ authenticated, active }) => authenticated && !active);
    expect(await withPassword("another one")).toEqual({ output: "", code: 255 });
    await target.session(({ authenticated, active }) => !authenticated && !active);
    // The client tries a wrong password, and then an unknown key. Both are rejected.
    const unknownKey = newKey(target.folder, "unknownKey");
    const order = ["-o", "PreferredAuthentications=password,publickey", "-i", unknownKey];
    expect(await withPassword("another one", order)).toEqual({ output: "", code: 255 });
    const refusals = () =>
      target.fleet.service
        .logs()
        .filter(({ msg }) => msg === "login to a device refused")
        .map(({ credential, refused }) => [credential, refused]);
    await expect.poll(refusals).toEqual([
      ["password", "password"],
      ["password", "password"],
      ["key", "key"],
    ]);
    expect(target.fleet.service.output()).not.toContain(PASSWORD);
    expect(target.fleet.service.output()).not.toContain("another one");
    expect(target.agent.output()).not.toContain(PASSWORD);
  });

  it("end when the agent is killed, and the device is offline until the agent returns", {
    tags: ["long"],
  }, async () => {
    const client = target.spawnSsh({ command: "echo begun; exec cat" });
    client.stderr.resume();
    await untilWritten(client.stdout, "begun");
    const exited = once(client, "close");
    await target.agent.kill();
    expect((await exited)[0]).toBe(255);
    await target.session(({ active }) => !active);
    const online = async () =>
      (await target.fleet.client.getDevice({ params: { uid: target.agent.uid } })).online;
    await expect.poll(online).toBe(false);
    const { code, stderr } = await login("true");
    expect(code).toBe(255);
    expect(stderr).toContain("The device is offline");
    await target.startAgent();
    await expect.poll(online).toBe(true);
    expect((await login("echo back")).stdout).toBe("back\n");
  });

  it("end when their device is deleted", async () => {
    const client = target.spawnSsh({ command: "echo begun; exec cat" });
    client.stderr.resume();
    await untilWritten(client.stdout, "begun");
    const exited = once(client, "close");
    await target.fleet.client.deleteDevice({ params: { uid: target.agent.uid } });
    expect((await exited)[0]).toBe(255);
    expect((await login("true")).stderr).toContain("Permission denied");
  });
});

it.skipIf(withoutSsh)(
  "leaves no open session after the service is killed, and keeps its identity",
  { tags: ["long"] },
  async () => {
    const folder = openFolder();
    const dataDir = await makeDataDir();
    const key = newKey(folder.path, "key");
    const fleet = await startSshService({ dataDir });
    const { service, client, tenant, namespace } = fleet;
    let port = Number(new URL(service.url).port);
    const moving = await startRelay(() => port);
    const agent = await startAgent({ url: moving.url, tenant, hostname: "edge-1", folder: folder.path });
    try {
      await acceptWithKey(fleet, agent.uid, key);
      const to = `root@${namespace}.edge-1`;
      const hostKeyFlags = (checking: string) => [
        "-o",
        `UserKnownHostsFile=${join(folder.path, "known")}`,
        "-o",
        "HostKeyAlias=gateway",
        "-o",
        `StrictHostKeyChecking=${checking}`,
      ];
      const open = spawnSsh({
        to,
        port: fleet.port,
        key,
        command: "echo begun; exec cat",
        flags: hostKeyFlags("accept-new"),
      });
      open.stderr.resume();
      await once(open.stdout, "data");
      await expect.poll(async () => (await client.getSessions({}))[0]?.active).toBe(true);
      const exited = once(open, "close");
      await service.kill();
      expect((await exited)[0]).toBe(255);
      const again = await startService({ dataDir, flags: ["--ssh-port", "0", ...UNLIMITED] });
      const newClient = createClient({ url: again.url, credential: passwordCredential(fleet.user) });
      try {
        port = Number(new URL(again.url).port);
        expect(await newClient.getSessions({})).toMatchObject([{ active: false, authenticated: true }]);
        await agent.tunnels(2);
        // The gateway must present the same host key as before.
        const flags = hostKeyFlags("yes");
        const back = await ssh({ to, port: sshPortOf(again), key, command: "echo back", flags });
        expect(back).toMatchObject({ stdout: "back\n" });
      } finally {
        await newClient.close();
        await again.stop();
      }
    } finally {
      await agent.stop();
      await client.close();
      moving.stop();
      folder.remove();
      await rm(dataDir, { recursive: true });
    }
  },
);
