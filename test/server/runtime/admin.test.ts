import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { testFolder } from "../../support/folder.ts";
import { runServerCommand, startService, type TestService } from "../support.ts";

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.stop());

async function login(username: string, password: string): Promise<number> {
  const response = await fetch(`${service.url}/api/login`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ username, password }),
  });
  return response.status;
}

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

describe("user create", () => {
  test("makes a confirmed user who can log in, with the password from stdin", async () => {
    const result = await service.admin(create("Ann"), "from-stdin\nnot this line\n");
    expect(result).toMatchObject({ code: 0, stderr: "" });
    expect(result.stdout).toMatch(/^User ann created, id [0-9a-f]{24}\n$/);
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
    ["a taken name", create("ann"), "hunter22", "taken"],
    [
      "a name with a blank",
      create("a n n", "--email", "ann2@example.com"),
      "hunter22",
      "username: may hold letters",
    ],
    ["a short password", create("short"), "1234", "password: "],
    ["no password", create("none"), "", "stdin holds no password"],
    [
      "a wrong number",
      create("number", "--max-namespaces", "many"),
      "hunter22",
      '--max-namespaces is "many"',
    ],
  ])("refuses %s", async (_case, args, password, reason) => {
    const result = await service.admin(args, password);
    expect(result.code).toBe(1);
    expect(result.stdout).toBe("");
    expect(result.stderr).toMatch(/^gatehouse-server: [^\n]+\n$/);
    expect(result.stderr).toContain(reason);
  });

  test("takes no password as an argument", async () => {
    expect((await service.admin(create("carl", "--password", "hunter22"))).code).toBe(2);
    expect((await service.admin(create("carl", "--password-stdin", "hunter22"), "hunter22")).code).toBe(2);
  });
});

test("user list shows the users, and no hash", async () => {
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
      stdout: "The password of EVE@example.com is changed\n",
    });
    expect(await login("eve", "old-password")).toBe(401);
    expect(await login("eve", "new-password")).toBe(200);
  });

  test("refuses an unknown user", async () => {
    expect(await service.admin(["user", "reset-password", "nobody"], "new-password")).toEqual({
      code: 1,
      stdout: "",
      stderr: 'gatehouse-server: no user has the name or e-mail "nobody"\n',
    });
  });
});

test("no password or hash is in the log", () => {
  expect(service.logs().some((line) => line.msg === "password reset by an administrator")).toBe(true);
  expect(service.output()).not.toMatch(/from-stdin|hunter22|old-password|new-password|\$2[aby]\$/);
});

describe("setup-link", () => {
  test("leads to the first user", async () => {
    const fresh = await startService();
    try {
      const link = await fresh.admin(["setup-link"]);
      const sign = (await fresh.admin(["setup-link", "--sign-only"])).stdout.trim();
      expect(link).toEqual({ code: 0, stdout: `${fresh.url}/setup?sign=${sign}\n`, stderr: "" });
      expect(sign).toMatch(/^[0-9a-f]{64}$/);
      const { username } = await fresh.setup();
      expect((await fresh.admin(["user", "list"])).stdout).toContain(username);
      const used = await fresh.admin(["setup-link", "--sign-only"]);
      expect(used).toMatchObject({ code: 0, stdout: `${sign}\n` });
      expect(used.stderr).toContain("is set up already");
      expect(fresh.output()).not.toContain(sign);
    } finally {
      await fresh.stop();
    }
  });
});

test("without a running service the folder is named, and how to start one", async () => {
  const folder = testFolder();
  expect(await runServerCommand(["admin", "setup-link"], { env: { GATEHOUSE_DATA_DIR: folder } })).toEqual({
    code: 1,
    stdout: "",
    stderr:
      `gatehouse-server: No service runs on the data folder ${folder}. Start it with ` +
      `\`gatehouse-server serve --data-dir ${folder}\`, or name another folder with --data-dir or GATEHOUSE_DATA_DIR.\n`,
  });
});
