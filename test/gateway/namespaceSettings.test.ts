import { once } from "node:events";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import type { ResponseOf } from "@gatehouse-access/sdk";
import ssh2 from "ssh2";
import { describe, expect, it } from "vitest";
import { isAlive, type Login, scp } from "../support/sshFleet.ts";
import { describeSsh, type SshTarget } from "./SshTarget.ts";

type Settings = Partial<ResponseOf<"getNamespace">["settings"]>;

const options = {
  flags: ["--ssh-keep-alive", "1"],
  agent: { flags: ["--allow-forwarding"] },
  begin: async (target: SshTarget) => chmodSync(target.folder, 0o777),
};

describeSsh("settings of a namespace", options, (target) => {
  const set = (settings: Settings) =>
    target.fleet.client.editNamespace({ params: { tenant: target.fleet.tenant }, body: { settings } });
  const to = () => target.to.replace("root@", "deploy@");
  const login = (more: Partial<Login>, stdin?: string) => target.ssh({ to: to(), ...more }, stdin);
  const ended = () => target.session(({ active }) => !active);

  describe("ssh_forwarding", () => {
    /** Starts a server that responds only after the client has closed its side of the connection (EOF). */
    async function startEcho() {
      const server = createServer({ allowHalfOpen: true }, (socket) => {
        let sent = "";
        socket.on("data", (data) => {
          sent += data;
        });
        socket.on("end", () => socket.end(`got ${sent}`));
        socket.on("error", () => socket.destroy());
      }).listen(0, "127.0.0.1");
      await once(server, "listening");
      const { port } = server.address() as { readonly port: number };
      return { port, target: `127.0.0.1:${port}`, stop: () => server.close() };
    }

    it("allows only the logins and targets of its rules", { tags: ["long"] }, async () => {
      const echo = await startEcho();
      try {
        const forward = (target: string) => login({ flags: ["-o", "LogLevel=INFO", "-W", target] }, "hello");
        const denied = await forward(echo.target);
        expect(denied).toMatchObject({ code: 255, stdout: "" });
        expect(denied.stderr).toContain(
          `forwarding to ${echo.target} is not allowed. Add a rule to the namespace's setting ssh_forwarding`,
        );
        await set({ sshForwarding: [{ login: "deploy", target: `127\\.0\\.0\\.1:${echo.port}` }] });
        expect(await forward(echo.target)).toMatchObject({ code: 0, stdout: "got hello" });
        // A rule applies only if its patterns match the whole target and the whole login name.
        await set({ sshForwarding: [{ login: "deploy", target: "127" }] });
        expect((await forward(echo.target)).code).toBe(255);
        await set({ sshForwarding: [{ login: "dep", target: ".*" }] });
        expect((await forward(echo.target)).code).toBe(255);
        // `x\Q` is a valid regular expression alone, but is invalid inside a group.
        await set({ sshForwarding: [{ login: ".*", target: "x\\Q" }] });
        expect((await forward(echo.target)).code).toBe(255);
        await set({ sshForwarding: [{ login: "x\\Q", target: ".*" }] });
        expect((await forward(echo.target)).code).toBe(255);
        await set({ sshForwarding: [{ login: "d|deploy", target: "1|127.*" }] });
        expect(await forward(echo.target)).toMatchObject({ code: 0, stdout: "got hello" });
        const closed = await forward("127.0.0.1:1");
        expect(closed.stderr).toContain("the device did not connect to the target");
        const refusals = () =>
          target.fleet.service.logs().filter(({ msg }) => msg === "a request of an SSH client was refused");
        await expect.poll(() => refusals().length).toBe(6);
        expect(refusals()[0]).toMatchObject({
          username: "deploy",
          reason: denied.stderr.match(/forwarding to .*/)?.[0],
        });
      } finally {
        echo.stop();
        await set({ sshForwarding: [] });
      }
    });

    it("refuses targets that are no host, whatever the patterns of the rules are", async () => {
      const echo = await startEcho();
      await set({ sshForwarding: [{ login: ".*", target: "(?s:.*)" }] });
      const client = new ssh2.Client();
      try {
        const ready = once(client, "ready");
        const sock = connect(target.fleet.port, "127.0.0.1");
        client.connect({ sock, username: to(), privateKey: readFileSync(target.key) });
        await ready;
        const forward = (target: string) =>
          new Promise<string>((resolve) => {
            client.forwardOut("127.0.0.1", 1, target, echo.port, (error, channel) => {
              channel?.close();
              resolve(error?.message ?? "open");
            });
          });
        expect(await forward("127.0.0.1")).toBe("open");
        for (const target of ["127.0.0.1\0", "127.0.0.1#", "", "127.0.0.1 x", "a/b", "x".repeat(256), "é"]) {
          expect(await forward(target), target).toContain("has no valid host name or IP address");
        }
        expect(await forward("localhost")).not.toContain("valid host name");
      } finally {
        client.end();
        echo.stop();
        await set({ sshForwarding: [] });
      }
    });

    it("allows neither reverse forwarding nor agent forwarding, and logs the refusals", async () => {
      await set({ sshForwarding: [{ login: ".*", target: ".*" }] });
      const { code, stderr } = await login({
        command: "true",
        flags: ["-o", "ExitOnForwardFailure=yes", "-R", "0:127.0.0.1:1"],
      });
      expect([code, stderr]).toEqual([255, expect.stringContaining("remote port forwarding failed")]);
      const reasons = () => target.fleet.service.logs().map(({ reason }) => reason);
      await expect.poll(reasons).toContain("the gateway does not support the request tcpip-forward");
      await set({ sshForwarding: [] });
    });
  });

  describe("session_record_mode", () => {
    // The last output may be recorded after the session has ended.
    const expectRecorded = (expected: boolean) =>
      target.session(({ active, recorded }) => !active && recorded === expected);

    it.each([
      ["default", { command: true, terminal: true, transfer: false }],
      ["terminals", { command: false, terminal: true, transfer: false }],
      ["all", { command: true, terminal: true, transfer: true }],
    ] as const)("%s", async (mode, expected) => {
      await set({ sessionRecord: true, sessionRecordMode: mode });
      const file = join(target.folder, "file");
      writeFileSync(file, "content of a file");
      // Makes the file readable for the agent's user, whatever the umask is.
      chmodSync(file, 0o644);
      expect((await login({ command: `cat ${file}` })).stdout).toBe("content of a file");
      await expectRecorded(expected.command);
      expect((await login({ command: `cat ${file}`, flags: ["-tt"] })).code).toBe(0);
      await expectRecorded(expected.terminal);
      const copy = `${to()}@127.0.0.1:${file}`;
      expect(await scp({ port: target.fleet.port, key: target.key }, copy, `${file}2`, ["-O"])).toBe(0);
      expect(readFileSync(`${file}2`, "utf8")).toBe("content of a file");
      await expectRecorded(expected.transfer);
    });

    it("reports the program, the direction and the size of a transfer", async () => {
      await set({ sessionRecord: true, sessionRecordMode: "default" });
      const file = join(target.folder, "sent");
      writeFileSync(file, "x".repeat(1000));
      const copy = `${to()}@127.0.0.1:${file}2`;
      expect(await scp({ port: target.fleet.port, key: target.key }, file, copy, ["-O"])).toBe(0);
      const { events } = await ended();
      const byType = new Map(events.items.map(({ type, data }) => [type, data]));
      expect(byType.get("exec")).toEqual({ command: `scp -t ${file}2` });
      expect(byType.get("transfer")).toEqual({
        program: "scp",
        direction: "upload",
        to_device: expect.closeTo(1020, -2),
        from_device: expect.closeTo(3, -1),
      });
    });

    it("records a command that only starts like a transfer", async () => {
      await set({ sessionRecord: true, sessionRecordMode: "default" });
      const { stdout } = await login({ command: "git-upload-pack /nowhere; echo shown" });
      expect(stdout).toBe("shown\n");
      await expectRecorded(true);
    });

    it("stops a recording at the size of session_record_megabytes", async () => {
      await set({ sessionRecord: true, sessionRecordMegabytes: 1 });
      expect((await login({ command: "head -c 3000000 /dev/zero | tr '\\0' x" })).stdout).toHaveLength(
        3_000_000,
      );
      const { uid } = await ended();
      const chunks = await target.fleet.client.getSessionRecord({ params: { uid, seat: "0" } });
      const size = chunks.reduce((sum, { message }) => sum + message.length, 0);
      expect(size).toBeLessThan(1024 * 1024);
      expect(size).toBeGreaterThan(800_000);
      await set({ sessionRecord: false, sessionRecordMegabytes: 0 });
    });
  });

  it("ends the command and the session of a client that vanishes", { tags: ["long"] }, async () => {
    const client = target.spawnSsh({ command: "echo $$; exec sleep 600" });
    client.stderr.resume();
    const [line] = await once(client.stdout, "data");
    const command = Number(String(line).trim());
    client.kill("SIGSTOP");
    try {
      await expect.poll(() => isAlive(command), { timeout: 20_000 }).toBe(false);
      await ended();
      const reasons = target.fleet.service.logs().map(({ reason }) => reason);
      expect(reasons).toContain("Keepalive timeout");
    } finally {
      client.kill("SIGKILL");
    }
  });

  it("reports at a login since when the device has been offline", async () => {
    await target.agent.stop();
    const { uid } = target.agent;
    const device = async () => target.fleet.client.getDevice({ params: { uid } });
    await expect.poll(async () => (await device()).online).toBe(false);
    const { code, stderr } = await login({ command: "true" });
    expect([code, stderr]).toEqual([
      255,
      expect.stringMatching(/is offline\. The service last saw it at 20\S+ \S+ UTC/),
    ]);
  });
});
