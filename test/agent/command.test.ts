import { createHash } from "node:crypto";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { passwordCheck } from "../../agent/password.ts";
import { environmentWithout, runCommand } from "../support/command.ts";
import { isRoot } from "../support/nobody.ts";
import { openFolder, startAgent } from "../support/sshFleet.ts";
import { DEVICE, FakeGateway, TENANT } from "./FakeGateway.ts";

const COMMAND = fileURLToPath(new URL("../../agent/bin/gatehouse-agent.js", import.meta.url));

let gateway: FakeGateway;
let folder: ReturnType<typeof openFolder>;
beforeAll(async () => {
  gateway = await FakeGateway.start();
  folder = openFolder();
});
afterAll(async () => {
  await gateway.stop();
  folder.remove();
});

/** Runs the command to its end. */
const ran = (args: readonly string[], stdin = "", env: NodeJS.ProcessEnv = {}) =>
  runCommand([COMMAND, ...args], { stdin, env: { ...environmentWithout("GATEHOUSE_"), ...env } });

const settings = () => [
  ...["run", "--url", gateway.url, "--tenant", TENANT],
  ...["--data-dir", join(folder.path, "none")],
];

it("keeps the key of its device, which nobody else may read", async () => {
  const options = { url: gateway.url, tenant: TENANT, hostname: DEVICE, folder: folder.path };
  const first = await startAgent(options);
  await first.stop();
  const file = join(folder.path, DEVICE, "device_key.pem");
  const { mode, uid } = statSync(file);
  // Of root, where root starts the agent: not of the user that it becomes.
  expect([mode & 0o777, uid]).toEqual([0o600, process.getuid?.()]);
  const digest = () => createHash("sha256").update(readFileSync(file)).digest("hex");
  const before = digest();
  const second = await startAgent(options);
  await second.stop();
  expect(digest()).toBe(before);
  expect(gateway.enrolments).toHaveLength(2);
  expect(gateway.enrolments[1]).toEqual(gateway.enrolments[0]);
});

it("prints a hash of the password that it reads", async () => {
  const { stdout } = await ran(["hash-password"], "a password\n");
  expect(stdout).toMatch(/^scrypt\$[\w-]{22}\$[\w-]{43}\n$/);
  const fits = passwordCheck(stdout.trim());
  expect(await Promise.all([fits("a password"), fits("a password\n")])).toEqual([true, false]);
});

it.each([
  ["a tenant that is none", ["run", "--url", "http://127.0.0.1:1", "--tenant", "lab"], /--tenant: /],
  [
    "an unknown flag",
    ["run", "--url", "http://127.0.0.1:1", "--tenant", TENANT, "--password", "p"],
    /unknown option '--password'/,
  ],
])("refuses %s as wrong usage", async (_what, args, message) => {
  expect(await ran(args)).toMatchObject({ code: 2, stdout: "", stderr: expect.stringMatching(message) });
});

it("refuses a hash that is none, without showing it", async () => {
  const user = isRoot ? ["--user", "nobody"] : [];
  const { code, stderr } = await ran([...settings(), ...user], "", {
    GATEHOUSE_AGENT_PASSWORD_HASH: "opensesame",
  });
  expect([code, stderr]).toEqual([2, expect.stringContaining("GATEHOUSE_AGENT_PASSWORD_HASH")]);
  expect(stderr).not.toContain("opensesame");
});

it.runIf(isRoot).each([
  ["no user", []],
  ["root", ["--user", "root"]],
])("serves nobody as root: %s", async (_what, flags) => {
  expect(await ran([...settings(), ...flags])).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/--user: /),
  });
  expect(existsSync(join(folder.path, "none"))).toBe(false);
});
