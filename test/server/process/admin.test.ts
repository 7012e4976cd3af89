import { Secret, TOTP } from "otpauth";
import { describe, expect, test } from "vitest";
import { call } from "../../support/call.ts";
import { testFolder } from "../../support/folder.ts";
import { runServerCommand, startService, testService } from "../../support/service.ts";
import { shared } from "../../support/shared.ts";
import { expectFailure } from "./failure.ts";

const service = shared(startService);

const login = async (username: string, password: string) =>
  (await call(service, "POST /api/login", { body: { username, password } })).status;

const create = (username: string, ...more: string[]) => [
  "user",
  "create",
  "--name",
  "A Name",
  "--username",
  username,
  "--email",
  `${username}@example.com`,
  ...more,
];

/**
 * Expected exit code and output of an admin command: `printing` for a command that succeeds, `failing` for one that
 * fails.
 */
const printing = (stdout: string) => ({ code: 0, stdout, stderr: "" });
const failing = (stderr: string) => ({ code: 1, stdout: "", stderr });

describe("user create", () => {
  test("creates a confirmed user who can log in, with the password from stdin", async () => {
    // Runs this command in a separate process, as an operator does. The later commands run in the test's process.
    const args = ["admin", ...create("Ann"), "--data-dir", service.dataDir];
    const result = await runServerCommand(args, { stdin: "from-stdin\nnot this line\n" });
    expect(result).toMatchObject({ code: 0, stderr: "" });
    expect(result.stdout).toMatch(/^Created the user ann \(id [0-9a-f]{24}\)\.\n$/);
    expect(await login("ann", "from-stdin")).toBe(200);
    expect(await login("ann@example.com", "from-stdin")).toBe(200);
  });

  test("prints a generated password once", async () => {
    const { stdout } = await service.admin(create("bob", "--generate-password"));
    const password = /^Password: (\S+)$/m.exec(stdout)?.[1] ?? "";
    expect(password.length).toBeGreaterThanOrEqual(20);
    expect(await login("bob", password)).toBe(200);
    expect(service.output()).not.toContain(password);
  });

  test.each([
    ["a taken name", create("ann"), "hunter22", "another user has this name"],
    [
      "a name with a blank",
      create("a n n", "--email", "ann2@example.com"),
      "hunter22",
      "username may contain letters",
    ],
    ["a short name", create("ci"), "hunter22", "gatehouse-server: username must have at least 3 characters"],
    ["a short password", create("short"), "1234", "password must have at least 5 characters"],
    ["no password", create("none"), "", "The standard input has no password"],
    [
      "a wrong number",
      create("number", "--max-namespaces", "many"),
      "hunter22",
      '--max-namespaces must be a whole number, or -1 for no limit, not "many"',
    ],
  ])("rejects %s", async (_case, args, password, reason) => {
    const result = await service.admin(args, password);
    expectFailure(result, /^gatehouse-server: [^\n]+\n$/);
    expect(result.stderr).toContain(reason);
  });

  test("accepts no password as an argument", async () => {
    expect((await service.admin(create("carl", "--password", "hunter22"))).code).toBe(2);
    expect((await service.admin(create("carl", "--password-stdin", "hunter22"), "hunter22")).code).toBe(2);
  });
});

test("user list prints the users, and no hash", async () => {
  await service.admin(create("dora", "--max-namespaces", "2"), "hunter22");
  const users = JSON.parse((await service.admin(["user", "list", "--json"])).stdout) as object[];
  expect(users).toContainEqual({
    id: expect.stringMatching(/^[0-9a-f]{24}$/),
    username: "dora",
    email: "dora@example.com",
    name: "A Name",
    status: "confirmed",
    maxNamespaces: 2,
    createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
  });
  const table = (await service.admin(["user", "list"])).stdout;
  expect(table).toMatch(/^USERNAME +E-MAIL +NAME +STATUS +MAX NAMESPACES +ID$/m);
  expect(table).toMatch(/^dora +dora@example\.com +A Name +confirmed +2 +[0-9a-f]{24}$/m);
});

describe("user reset-password", () => {
  test("replaces the password and ends a lockout", async () => {
    await service.admin(create("eve"), "old-password");
    for (let attempt = 0; attempt < 3; attempt += 1) await login("eve", "wrong-password");
    expect(await login("eve", "old-password")).toBe(429);
    expect(await service.admin(["user", "reset-password", "EVE@example.com"], "new-password")).toMatchObject({
      code: 0,
      stdout: "Changed the password of EVE@example.com.\n",
    });
    expect(await login("eve", "old-password")).toBe(401);
    expect(await login("eve", "new-password")).toBe(200);
  });
});

/** Returns the token of a login. */
const tokenOf = async (username: string, password: string): Promise<string> =>
  (await call(service, "POST /api/login", { body: { username, password } })).body.token;

const accepted = async (token: string) =>
  (await call(service, "GET /api/auth/user", { token })).status === 200;

async function enableMfa(token: string): Promise<void> {
  const { body: generated } = await call(service, "GET /api/user/mfa/generate", { token });
  await call(service, "PATCH /api/users", { token, body: { recovery_email: "recovery@example.net" } });
  const code = new TOTP({ secret: Secret.fromBase32(generated.secret) }).generate();
  const enabled = await call(service, "PUT /api/user/mfa/enable", { token, body: { ...generated, code } });
  expect(enabled.status).toBe(200);
}

test("every command about a user rejects an unknown user", async () => {
  for (const args of [
    ["reset-password", "nobody"],
    ["disable-mfa", "nobody"],
    ["sign-out", "nobody"],
    ["confirm-address", "nobody", "a@example.net"],
  ]) {
    expect(await service.admin(["user", ...args], "new-password")).toEqual(
      failing('gatehouse-server: no user has the name or e-mail "nobody"\n'),
    );
  }
});

describe("user confirm-address", () => {
  test("applies an address that the user has requested", async () => {
    await service.admin(create("kai"), "old-password");
    const token = await tokenOf("kai", "old-password");
    const address = "kai@elsewhere.example.net";
    const changed = await call(service, "PATCH /api/users", { token, body: { email: address } });
    expect(changed.status).toBe(200);
    expect((await call(service, "GET /api/auth/user", { token })).body.email).not.toBe(address);
    expect(await service.admin(["user", "confirm-address", "kai", address])).toEqual(
      printing(`The e-mail address of kai is now ${address}.\n`),
    );
    expect(await tokenOf(address, "old-password")).toBeDefined();
    expect(await service.admin(["user", "confirm-address", "kai", address])).toEqual(
      failing(`gatehouse-server: ${address} is not an unconfirmed address of "kai"\n`),
    );
  });
});

describe("user disable-mfa", () => {
  test("lets a user who lost the second factor log in with the password, and enable MFA again", async () => {
    await service.admin(create("fay"), "old-password");
    await enableMfa(await tokenOf("fay", "old-password"));
    const body = { username: "fay", password: "old-password" };
    const refused = await call(service, "POST /api/login", { body });
    expect(refused.status).toBe(401);
    const waiting = refused.headers.get("x-mfa-token");
    expect(await service.admin(["user", "disable-mfa", "Fay@example.com"])).toEqual(
      printing("Disabled MFA for Fay@example.com.\n"),
    );
    const late = { token: waiting, code: "123456" };
    expect((await call(service, "POST /api/user/mfa/auth", { body: late })).status).toBe(401);
    const token = await tokenOf("fay", "old-password");
    expect(await accepted(token)).toBe(true);
    await enableMfa(token);
    expect(await login("fay", "old-password")).toBe(401);
  });
});

describe("user sign-out", () => {
  test("ends all logins of the user, and of no other user", async () => {
    for (const name of ["gus", "hal"]) await service.admin(create(name), "old-password");
    const [first, second] = [await tokenOf("gus", "old-password"), await tokenOf("gus", "old-password")];
    const other = await tokenOf("hal", "old-password");
    expect(await service.admin(["user", "sign-out", "gus"])).toEqual(printing("Ended all logins of gus.\n"));
    for (const token of [first, second]) expect(await accepted(token)).toBe(false);
    expect(await accepted(other)).toBe(true);
    expect(await accepted(await tokenOf("gus", "old-password"))).toBe(true);
  });
});

describe("rotate-signing-key", () => {
  const kidOf = (token: string) => (JSON.parse(atob(token.split(".")[0] ?? "")) as { kid: string }).kid;

  test("signs with a new key, and accepts the previous key until it is revoked", async () => {
    await service.admin(create("ida"), "old-password");
    const old = await tokenOf("ida", "old-password");
    const rotated = await service.admin(["rotate-signing-key"]);
    expect(rotated).toMatchObject({ code: 0, stderr: "" });
    const kid = /^New tokens are signed with the key (\S+)\.\nTokens of the previous key stay valid /.exec(
      rotated.stdout,
    )?.[1];
    const fresh = await tokenOf("ida", "old-password");
    expect([kidOf(fresh), kidOf(old) === kid]).toEqual([kid, false]);
    for (const token of [old, fresh]) expect(await accepted(token)).toBe(true);

    const revoked = await service.admin(["rotate-signing-key", "--revoke"]);
    expect(revoked.stdout).toMatch(
      /^New tokens are signed with the key \S+\.\nAll tokens of older keys are revoked\. Users must log in again/,
    );
    for (const token of [old, fresh]) expect(await accepted(token)).toBe(false);
    expect(await accepted(await tokenOf("ida", "old-password"))).toBe(true);
  });
});

test.each([
  [["user", "disable-mfa", "--help"], "lost the second factor"],
  [["user", "sign-out", "--help"], "End all logins of a user"],
  [["rotate-signing-key", "--help"], "--revoke"],
])("%j prints its help", async (args, about) => {
  expect(await service.admin(args)).toMatchObject({ code: 0, stdout: expect.stringContaining(about) });
});

test("the log contains no password and no hash", () => {
  expect(service.logs().some((line) => line.msg === "password reset by an administrator")).toBe(true);
  expect(service.output()).not.toMatch(/from-stdin|hunter22|old-password|new-password|\$2[aby]\$/);
});

describe("setup-link", () => {
  test("prints a link for the first user", { tags: ["long"] }, async () => {
    const fresh = await testService();
    const link = await fresh.admin(["setup-link"]);
    const sign = (await fresh.admin(["setup-link", "--sign-only"])).stdout.trim();
    expect(link).toEqual({ code: 0, stdout: `${fresh.url}/setup?sign=${sign}\n`, stderr: "" });
    expect(sign).toMatch(/^[0-9a-f]{64}$/);
    const { username } = await fresh.setup();
    expect((await fresh.admin(["user", "list"])).stdout).toContain(username);
    const used = await fresh.admin(["setup-link", "--sign-only"]);
    expect(used).toMatchObject({ code: 0, stdout: `${sign}\n` });
    expect(used.stderr).toContain("so the service is set up");
    expect(fresh.output()).not.toContain(sign);
  });
});

test("without a running service, reports the folder and the command that starts a service", async () => {
  const folder = testFolder();
  expect(await runServerCommand(["admin", "setup-link"], { env: { GATEHOUSE_DATA_DIR: folder } })).toEqual({
    code: 1,
    stdout: "",
    stderr:
      `gatehouse-server: No service runs on the data folder ${folder}. Start it with ` +
      `\`gatehouse-server serve --data-dir ${folder}\`, or choose another folder with --data-dir or GATEHOUSE_DATA_DIR.\n`,
  });
});

test("announcements require the cloud edition", async () => {
  const result = await service.admin(["announcement", "create", "--title", "x"], "text");
  expectFailure(result, "Only the cloud edition");
});

describe("audit", () => {
  test("prints the entries of the commands, latest first, and no secret", async () => {
    expect((await service.admin(create("ivo"), "ivos-password\n")).code).toBe(0);
    expect((await service.admin(["user", "reset-password", "ivo"], "another-word\n")).code).toBe(0);
    const { code, stdout } = await service.admin(["audit", "--json", "--limit", "2"]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject([
      { operation: "reset-password", actor: { kind: "operator" }, after: { password: "*** (changed)" } },
      { operation: "user create", object: { kind: "user" }, before: null, after: { username: "ivo" } },
    ]);
    expect(stdout).not.toMatch(/ivos-password|another-word|\$2b\$/);
    expect((await service.admin(["audit"])).stdout).toMatch(/^TIME +WHO +FROM +OPERATION +OBJECT +CHANGE\n/);
  });

  test("reports the valid values for a wrong limit", async () => {
    expectFailure(await service.admin(["audit", "--limit", "0"]), "limit must be at least 1");
  });
});
