/**
 * Slow: an agent connects. Faster tests in deviceCommands.test.ts and test/agent cover both sides.
 *
 * @module-tag long
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { userInfo } from "node:os";
import { delimiter, dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { environmentWithout } from "../support/command.ts";
import { COMMAND } from "../support/gatehouse.ts";
import { isRoot } from "../support/nobody.ts";
import { newKey, openFolder, publicHalf, ssh, startSshService, withoutSsh } from "../support/sshFleet.ts";
import { openTerminal } from "../support/terminal.ts";

/** The folder with the commands of the packages. */
const COMMANDS = fileURLToPath(new URL("../../node_modules/.bin", import.meta.url));

/** Starts a command line in a shell. Returns a function that waits until the command has printed a text. */
function startShell(command: string, cwd: string) {
  const PATH = [COMMANDS, dirname(process.execPath), process.env.PATH].join(delimiter);
  const env = { ...environmentWithout("GATEHOUSE_"), PATH };
  const child = spawn("/bin/sh", ["-c", `exec ${command}`], { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
  onTestFinished(async () => {
    if (child.exitCode !== null || !child.kill()) return;
    await once(child, "exit");
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk) => {
      output += chunk;
    });
  }
  return (expected: string) => expect.poll(() => output).toContain(expected);
}

test.skipIf(withoutSsh)(
  "the printed command connects a device, and a key logs in after the acceptance",
  async () => {
    const folder = openFolder();
    onTestFinished(() => folder.remove());
    const fleet = await startSshService();
    onTestFinished(() => fleet.stop());
    const { service, user, client, tenant, port } = fleet;
    const terminal = openTerminal(process.execPath, [COMMAND, "device", "enroll"], {
      env: {
        ...environmentWithout("GATEHOUSE_", "PULUMI_"),
        GATEHOUSE_URL: service.url,
        GATEHOUSE_TENANT: tenant,
        GATEHOUSE_USERNAME: user.username,
        GATEHOUSE_PASSWORD: user.password,
      },
    });
    await terminal.untilShown("(Ctrl-C to stop)");
    const command = /^ {2}(gatehouse-agent run .*?) +#/m.exec(terminal.shown())?.[1] ?? "";
    // The agent of root needs a user for its sessions, as docs/get-started/first-device.md describes.
    const agentPrints = startShell(`${command}${isRoot ? " --user nobody" : ""}`, folder.path);
    await terminal.untilShown("Accept this device? [y/N] ");
    const uid = /^ {2}uid +(\S+)/m.exec(terminal.shown())?.[1] ?? "";
    await agentPrints(`"uid":"${uid}"`);
    terminal.type("y");
    expect(await terminal.code).toBe(0);
    const [, address = ""] = /ssh (?:-p \d+ )?<login>@(\S+)@127\.0\.0\.1/.exec(terminal.shown()) ?? [];
    await agentPrints('"tunnel open"');

    const key = newKey(folder.path, "key");
    const login = isRoot ? "nobody" : userInfo().username;
    const to = `${login}@${address}`;
    const run = () => ssh({ to, port, key, command: "echo in $SHELL" });
    expect(await run()).toMatchObject({ code: 255, stdout: "" });
    const everything = { username: `^${login}$`, filter: { hostname: ".*" } };
    await client.createPublicKey({ body: { name: "key", data: publicHalf(key), ...everything } });
    expect(await run()).toMatchObject({ code: 0, stdout: expect.stringMatching(/^in \//) });
  },
);
