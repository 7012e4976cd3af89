import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { spawn as spawnInTerminal } from "@lydell/node-pty";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import {
  admitKey,
  CLIENT,
  newKey,
  openFolder,
  type SshService,
  spawnSsh,
  ssh,
  startSshService,
  withoutSsh,
} from "../support/sshFleet.ts";
import { ReplayedAgent } from "./ReplayedAgent.ts";

// `recorded` has the messages of real agents and the service; the first line of a file has their origin.
// `npm run test:clients -- --agent <program>` runs a real agent. To record again, put a proxy between agent and service
// that writes their HTTP and WebSocket messages, and make the gateway's SSH library write its messages before
// encryption. Keep-alives of the recorded agent are only replayed at its start.
const USER = "probe";
const PASSWORD = "kept at the device alone";

/** Requests of sftp clients differ between versions. The scene needs the recorded version. */
const RECORDED_SSH = "OpenSSH_9.2";
const otherSftp =
  withoutSsh === undefined && !spawnSync("ssh", ["-V"], { encoding: "utf8" }).stderr.startsWith(RECORDED_SSH)
    ? ` (recorded with the sftp of ${RECORDED_SSH}, which is not on the PATH)`
    : "";

/** The recordings, by the version of the agent. Recordings of 0.27 have the scenes that differ from 0.19. */
const RECORDINGS = {
  "0.19": "agent-0.19.jsonl",
  "0.27, transport 1": "transport-1-agent-0.27.jsonl",
  "0.27, transport 2": "agent-0.27.jsonl",
};

describe.skipIf(withoutSsh).each(Object.entries(RECORDINGS))(
  `agents of %s${withoutSsh ? ` (${withoutSsh})` : ""}`,
  (_version, recording) => {
    const file = new URL(`recorded/${recording}`, import.meta.url);
    const recorded = readFileSync(file, "utf8");
    const isMissing = (scene: string) => !recorded.includes(`"scene":"${scene}"`);
    const folder = openFolder();
    let fleet: SshService;
    let agent: ReplayedAgent;
    let key: string;
    let to: string;
    let uid: string;

    beforeAll(async () => {
      key = newKey(folder.path, "key");
      fleet = await startSshService();
      const { service, tenant, namespace } = fleet;
      agent = new ReplayedAgent({ url: service.url, tenant, password: PASSWORD, file });
      await admitKey(fleet, key);
      to = `${USER}@${namespace}.edge-01`;
    });
    afterAll(async () => {
      agent?.stop();
      await fleet?.stop();
      folder.remove();
    });

    const scene: ReplayedAgent["scene"] = (name, play) => agent.scene(name, play);

    const login = (command: string, stdin = "") => ssh({ to, port: fleet.port, key, command }, stdin);

    it("enroll, and open a tunnel", () =>
      scene("start", async () => {
        const { client } = fleet;
        await expect.poll(() => client.getDevices({ query: { status: "pending" } })).toHaveLength(1);
        const [device] = await client.getDevices({ query: { status: "pending" } });
        uid = device?.uid ?? "";
        await client.acceptDevice({ params: { uid } });
        const { name, info, online } = await client.getDevice({ params: { uid } });
        return { name, info, online };
      }));

    it("run commands, and return their errors in the output", () =>
      scene("exec", () => login("cat; echo out; echo complaint >&2; exit 3", "in\n")));

    it.skipIf(isMissing("shell"))("run shells in terminals whose size changes", () =>
      scene("shell", async () => {
        const args = ["-F", "none", ...CLIENT, "-p", String(fleet.port), "-i", key, "-tt", `${to}@127.0.0.1`];
        const terminal = spawnInTerminal("ssh", args, {
          name: "xterm",
          cols: 80,
          rows: 24,
          env: { PATH: process.env.PATH },
        });
        let output = "";
        terminal.onData((more) => {
          output += more;
        });
        const exited = new Promise<number>(
          (resolve) => void terminal.onExit(({ exitCode }) => resolve(exitCode)),
        );
        const prompts = (count: number) =>
          vi.waitFor(() => expect(output.split("$ ").length).toBe(count + 1), { timeout: 20_000 });
        await prompts(1);
        terminal.write("stty size\r");
        await prompts(2);
        terminal.resize(100, 30);
        // The shell prints its line again after a change of size.
        await prompts(3);
        terminal.write("stty size; exit 3\r");
        return { code: await exited, output };
      }),
    );

    it.skipIf(otherSftp)(`transfer files${otherSftp}`, () =>
      scene("sftp", async () => {
        const at = (name: string) => join(folder.path, name);
        writeFileSync(at("sent"), "sent and received\n");
        // The client sends this mode to the device. Otherwise the mode would depend on the umask.
        chmodSync(at("sent"), 0o644);
        const moved = "/tmp/moved-by-recorded-agent";
        writeFileSync(
          at("batch"),
          `put ${at("sent")} ${moved}\nget ${moved} ${at("received")}\nrm ${moved}\n`,
        );
        const args = ["-F", "none", "-b", at("batch"), "-P", String(fleet.port), "-i", key, ...CLIENT];
        const client = spawn("sftp", [...args, `${to}@127.0.0.1`], {
          stdio: ["ignore", "ignore", "inherit"],
        });
        const [code] = await once(client, "close");
        return { code, received: readFileSync(at("received"), "utf8") };
      }),
    );

    it("accept the right password after a wrong one", () =>
      scene("password", async () => {
        const wasPrompted = join(folder.path, "wasPrompted");
        const askpass = join(folder.path, "askpass");
        const answer = `if [ -e ${wasPrompted} ]; then printf "%s\\n" "$RIGHT"; else touch ${wasPrompted}; echo wrong; fi`;
        writeFileSync(askpass, `#!/bin/sh\n${answer}\n`, { mode: 0o755 });
        const env = { SSH_ASKPASS: askpass, SSH_ASKPASS_REQUIRE: "force", RIGHT: PASSWORD, DISPLAY: ":0" };
        const client = spawnSsh({ to, port: fleet.port, command: "echo in", env });
        client.stdin.end();
        client.stderr.resume();
        const [stdout, [code]] = await Promise.all([text(client.stdout), once(client, "close")]);
        rmSync(wasPrompted);
        return { code, stdout };
      }));

    it.skipIf(isMissing("closed"))("close a connection when the recording closes it", () =>
      scene("closed", async () => {
        const client = spawnSsh({ to, port: fleet.port, key, command: "echo begun; exec cat" });
        const complaint = text(client.stderr);
        await once(client.stdout, "data");
        agent.checkEvent("the agent is to close the connection");
        const [code] = await once(client, "close");
        return { code, complaint: await complaint };
      }),
    );

    it("end their sessions when the service closes them", () =>
      scene("session closed", async () => {
        const client = spawnSsh({ to, port: fleet.port, key, command: "echo begun; exec cat" });
        const complaint = text(client.stderr);
        await once(client.stdout, "data");
        const exited = once(client, "close");
        const [session] = await fleet.client.getSessions({});
        await fleet.client.closeSession({ params: { uid: session?.uid ?? "" }, body: { device: uid } });
        return { code: (await exited)[0], complaint: await complaint };
      }));

    it.skipIf(isMissing("not picked up"))("report that they could not pick up a connection", () =>
      scene("not picked up", () => {
        agent.checkEvent("the agent cannot pick up");
        return login("true");
      }),
    );

    it("repeat their requests after the service has deleted the device", () =>
      scene("deleted", async () => {
        await fleet.client.deleteDevice({ params: { uid } });
        agent.checkEvent("the tunnel is cut");
        return (await login("true")).code;
      }));
  },
);
