import { createHash, verify } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { devices } from "@gatehouse-access/sdk/contract";
import { afterAll, beforeAll, expect, it } from "vitest";
import { deviceKey } from "../../agent/identity.ts";
import { passwordCheck } from "../../agent/password.ts";
import { environmentWithout, runCommand } from "../support/command.ts";
import { isRoot } from "../support/nobody.ts";
import { openFolder, startAgent } from "../support/sshFleet.ts";
import { CHALLENGE, DEVICE, FakeGateway, newRsaKey, TENANT } from "./FakeGateway.ts";

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

const optionsOf = (hostname: string) => ({ url: gateway.url, tenant: TENANT, hostname, folder: folder.path });

/** Runs the agent command until it exits. */
const ran = (args: readonly string[], stdin = "", env: NodeJS.ProcessEnv = {}) =>
  runCommand([COMMAND, ...args], { stdin, env: { ...environmentWithout("GATEHOUSE_"), ...env } });

const settings = () => [
  "run",
  "--url",
  gateway.url,
  "--tenant",
  TENANT,
  "--data-dir",
  join(folder.path, "none"),
];

it("stores the device's key unreadable for other users", async () => {
  const first = await startAgent(optionsOf(DEVICE));
  await first.stop();
  const file = join(folder.path, DEVICE, "device_key.pem");
  const { mode, uid } = statSync(file);
  // If root starts the agent, the file belongs to root, not to the user that the agent switches to.
  expect([mode & 0o777, uid]).toEqual([0o600, process.getuid?.()]);
  const digest = () => createHash("sha256").update(readFileSync(file)).digest("hex");
  const before = digest();
  const second = await startAgent(optionsOf(DEVICE));
  await second.stop();
  expect(digest()).toBe(before);
  expect(gateway.enrollments).toHaveLength(2);
  expect(gateway.enrollments[1]).toEqual(gateway.enrollments[0]);
});

it("reports why it cannot use the key, and the remedy", () => {
  const data = join(folder.path, "broken");
  mkdirSync(data);
  const file = join(data, "device_key.pem");
  writeFileSync(file, "no key");
  expect(() => deviceKey(data)).toThrow(
    `The file ${file} is not a private key in PEM form. Restore it, or delete it to enroll a new device.`,
  );
  const below = join(file, "data");
  expect(() => deviceKey(below)).toThrow(
    `Cannot write ${below} (--data-dir): a part of the path is a file, not a folder. Correct the path.`,
  );
});

it("proves its private key to services that send challenges, and enrolls without a proof at other services", async () => {
  const [{ public_key: publicKey, proof } = { public_key: "", proof: undefined }] = gateway.enrollments;
  const signature = Buffer.from(proof?.signature ?? "", "base64");
  expect(verify("sha256", Buffer.from(devices.proofText(TENANT, CHALLENGE)), publicKey, signature)).toBe(
    true,
  );
  gateway.challenges = false;
  const agent = await startAgent(optionsOf(DEVICE));
  await agent.stop();
  gateway.challenges = true;
  expect(gateway.enrollments.at(-1)).toMatchObject({ public_key: publicKey });
  expect(gateway.enrollments.at(-1)).not.toHaveProperty("proof");
});

it("accepts only the service key in the response to the first enrollment", { tags: ["long"] }, async () => {
  const [own, another] = [newRsaKey(), newRsaKey()];
  for (const key of [own, another]) gateway.hold(key);
  gateway.agentKey = own;
  const options = { ...optionsOf("pinned"), flags: ["--logins", "deploy"] };
  const first = await startAgent(options);
  const refusal = "All configured authentication methods failed";
  await expect(gateway.login({ username: "deploy", privateKey: another })).rejects.toThrow(refusal);
  (await gateway.login({ username: "deploy", privateKey: own })).end();
  await first.stop();
  // An attacker between the agent and the service sends another key to the agent and signs with this key.
  gateway.agentKey = another;
  const second = await startAgent(options);
  await expect(gateway.login({ username: "deploy", privateKey: another })).rejects.toThrow(refusal);
  (await gateway.login({ username: "deploy", privateKey: own })).end();
  expect(second.output()).toMatch(/"level":"error".*"pinned":"SHA256:.*"named":"SHA256:.*service_key\.pub/);
  await second.stop();
  gateway.agentKey = undefined;
  const { mode, uid } = statSync(join(folder.path, "pinned", "service_key.pub"));
  expect([mode & 0o777, uid]).toEqual([0o600, process.getuid?.()]);
});

it("prints a hash of the password from stdin", { tags: ["long"] }, async () => {
  const { stdout } = await ran(["hash-password"], "a password\n");
  expect(stdout).toMatch(/^scrypt\$[\w-]{22}\$[\w-]{43}\n$/);
  const fits = passwordCheck(stdout.trim());
  expect(await Promise.all([fits("a password"), fits("a password\n")])).toEqual([true, false]);
});

it.each([
  [
    "a malformed tenant",
    ["run", "--url", "http://127.0.0.1:1", "--tenant", "lab"],
    /--tenant \(GATEHOUSE_AGENT_TENANT\) must be a lower-case uuid, the id of a namespace\. Run `gatehouse namespace list`/,
  ],
  [
    "plain HTTP to another machine",
    ["run", "--url", "http://203.0.113.1", "--tenant", TENANT],
    /--url: http:\/\/ to another machine is not allowed.*--allow-http/,
  ],
  [
    "an unknown flag",
    ["run", "--url", "http://127.0.0.1:1", "--tenant", TENANT, "--password", "p"],
    /Unknown flag --password\./,
  ],
])("refuses %s as wrong usage", async (_what, args, message) => {
  expect(await ran(args)).toMatchObject({ code: 2, stdout: "", stderr: expect.stringMatching(message) });
});

it("rejects a malformed hash without printing it", { tags: ["long"] }, async () => {
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
])("refuses to serve as root: %s", async (_what, flags) => {
  expect(await ran([...settings(), ...flags])).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(
      /--user (is not set, and root starts the agent\. Add --user <name>|must not be root)/,
    ),
  });
  expect(existsSync(join(folder.path, "none"))).toBe(false);
});
