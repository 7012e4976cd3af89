import { chmodSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { boundedStart } from "../../../server/process/boundMemory.ts";
import { testFolder } from "../../support/folder.ts";
import { postgresqlAddress } from "../../support/postgresql/database.ts";
import { callServerCommand } from "../../support/serverCommand.ts";
import { KEPT_FILES, runServerCommand, startService, type TestService } from "../support.ts";
import { internalToken, internalUrl, startInternal } from "./internalListener.ts";

describe("a running service", () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.stop());

  test("answers probes without a login", async () => {
    for (const path of ["/healthz", "/readyz"]) {
      const response = await fetch(`${service.url}${path}`);
      expect([response.status, await response.json()]).toEqual([200, { status: "ok" }]);
    }
  });

  test("keeps all its files for its user alone", () => {
    expect(readdirSync(service.dataDir).sort()).toEqual(
      expect.arrayContaining(["admin.sock", ...KEPT_FILES]),
    );
    for (const name of readdirSync(service.dataDir)) {
      expect([name, statSync(join(service.dataDir, name)).mode & 0o777]).toEqual([name, 0o600]);
    }
  });

  test.skipIf(process.platform !== "linux")("has begun itself anew, so that it holds little memory", () => {
    const [, ...flags] = readFileSync(`/proc/${service.pid}/cmdline`, "utf8").split("\0");
    expect(flags).toEqual(expect.arrayContaining(boundedStart([], {}).flags as string[]));
  });

  test("says in one line of its log where it listens", () => {
    const lines = service.logs().filter((line) => line.msg === "listening");
    expect(lines).toEqual([expect.objectContaining({ address: service.url, dataDir: service.dataDir })]);
  });

  test("is the only one on its data folder", async () => {
    const second = await callServerCommand(["serve", "--data-dir", service.dataDir, "--port", "0"]);
    expect(second.code).toBe(1);
    expect(second.stderr).toMatch(
      postgresqlAddress() === undefined
        ? /^gatehouse-server: The database .* is in use by another process[^\n]*\n$/
        : /^gatehouse-server: Another service runs on the data folder [^\n]*\n$/,
    );
    const elsewhere = `file:${join(testFolder(), "other.db")}`;
    const third = await callServerCommand([
      "serve",
      "--data-dir",
      service.dataDir,
      "--port",
      "0",
      "--database-url",
      elsewhere,
    ]);
    expect(third.code).toBe(1);
    expect(third.stderr).toMatch(/^gatehouse-server: Another service runs on the data folder [^\n]*\n$/);
    // The refused ones have taken nothing from the first.
    expect((await service.admin(["setup-link"])).code).toBe(0);
    expect((await fetch(`${service.url}/readyz`)).status).toBe(200);
  });

  test("tells a second one that the port is taken", async () => {
    const { port } = new URL(service.url);
    const second = await runServerCommand(["serve", "--data-dir", testFolder(), "--port", port]);
    expect(second.code).toBe(1);
    expect(second.stderr).toMatch(
      new RegExp(
        `^gatehouse-server: Cannot listen on 127.0.0.1 port ${port} \\(--host, --port\\): [^\\n]*EADDRINUSE[^\\n]*\\n$`,
      ),
    );
  });
});

describe("the listener for internal operations", () => {
  const authorised = (token: string, path = "/internal/auth") => ({
    path,
    headers: { "X-Internal-Token": token },
  });
  const ask = async (service: TestService, { path, headers }: ReturnType<typeof authorised>) =>
    (await fetch(`${internalUrl(service)}${path}`, { headers })).status;

  test("takes its token from a file, and logs it nowhere", async () => {
    const file = join(testFolder(), "token");
    writeFileSync(file, `${internalToken}\n`);
    const service = await startInternal({
      GATEHOUSE_INTERNAL_TOKEN: "",
      GATEHOUSE_INTERNAL_TOKEN_FILE: file,
      GATEHOUSE_LOG_LEVEL: "trace",
    });
    // The user's credential is missing; the service's own token is right.
    expect(await ask(service, authorised(internalToken))).toBe(401);
    expect(await ask(service, authorised(internalToken, "/api/devices"))).toBe(404);
    expect(await ask(service, authorised(`${internalToken}x`))).toBe(403);
    expect((await fetch(`${service.url}/internal/auth`, authorised(internalToken))).status).toBe(404);
    expect(await service.stop()).toBe(0);
    // What it wrote is all here once it has ended.
    const requests = service.logs().filter((line) => line.msg === "request" && line.listener === "internal");
    expect(requests.map((line) => line.statusCode)).toEqual([401, 404, 403]);
    expect(service.output()).not.toContain(internalToken);
  });

  test("is not opened without a token, nor is anything else", async () => {
    const dataDir = join(testFolder(), "data");
    const args = ["serve", "--data-dir", dataDir, "--port", "0", "--internal-port", "0"];
    const { code, stderr } = await callServerCommand(args);
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^gatehouse-server: GATEHOUSE_INTERNAL_PORT [^\n]* is set without GATEHOUSE_INTERNAL_TOKEN[^\n]*\n$/,
    );
    expect(existsSync(dataDir)).toBe(false);
    const flag = await callServerCommand([...args, "--internal-token", internalToken]);
    expect(flag).toMatchObject({ code: 2, stderr: expect.stringContaining("unknown option") });
  });

  test("whose port is taken keeps the service from starting, and says so", async () => {
    const service = await startInternal({});
    const { port } = new URL(internalUrl(service));
    const second = await runServerCommand(
      ["serve", "--data-dir", testFolder(), "--port", "0", "--internal-port", port],
      { env: { GATEHOUSE_INTERNAL_TOKEN: internalToken } },
    );
    expect(second.code).toBe(1);
    expect(second.stderr).toContain(`port ${port} (--internal-host, --internal-port): `);
    await service.stop();
  });
});

describe("starting", () => {
  test("later starts keep keys and data", async () => {
    const dataDir = testFolder();
    const first = await startService({ dataDir });
    const sign = (await first.admin(["setup-link", "--sign-only"])).stdout;
    await first.createUser({ username: "ann", password: "hunter22" });
    await first.stop();
    const second = await startService({ dataDir });
    expect((await second.admin(["setup-link", "--sign-only"])).stdout).toBe(sign);
    expect(JSON.parse((await second.admin(["user", "list", "--json"])).stdout)).toMatchObject([
      { username: "ann" },
    ]);
    expect([first, second].map((service) => service.output().includes("database migrated"))).toEqual(
      postgresqlAddress() === undefined ? [true, false] : [false, false],
    );
    await second.stop();
  });

  test("what a killed service left behind is no obstacle, also where the socket had to be elsewhere", {
    tags: ["long"],
  }, async () => {
    for (const dataDir of [testFolder(), join(testFolder(), "long-name-".repeat(12))]) {
      const killed = await startService({ dataDir });
      await killed.kill();
      expect(readdirSync(dataDir).filter((name) => name.startsWith("admin.sock"))).toHaveLength(1);
      const next = await startService({ dataDir });
      expect((await next.admin(["setup-link"])).code).toBe(0);
      expect(await next.stop()).toBe(0);
      expect(readdirSync(dataDir).filter((name) => name.startsWith("admin.sock"))).toEqual([]);
    }
  });

  test("wrong settings get a line each, no stack, and nothing is made", async () => {
    const dataDir = join(testFolder(), "data");
    const { code, stderr, stdout } = await callServerCommand(
      ["serve", "--data-dir", dataDir, "--port", "http"],
      {
        env: { GATEHOUSE_EDITION: "gold", GATEHOUSE_DATABASE_URL: "mysql://gate:pa55word@db/gate" },
      },
    );
    expect(code).toBe(1);
    expect(stdout).toBe("");
    expect(stderr.trim().split("\n")).toEqual([
      expect.stringContaining('--port (variable GATEHOUSE_PORT) is "http": it must be'),
      expect.stringContaining("GATEHOUSE_DATABASE_URL (flag --database-url) has a value that cannot be used"),
      expect.stringContaining('GATEHOUSE_EDITION (flag --edition) is "gold": it must be'),
    ]);
    expect(stderr).not.toContain("pa55word");
    expect(existsSync(dataDir)).toBe(false);
  });

  test("a wrong command line ends with 2, help with 0", async () => {
    expect(await runServerCommand(["serve", "--prot", "1"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("unknown option '--prot'"),
    });
    expect((await callServerCommand(["frobnicate"])).code).toBe(2);
    const help = await callServerCommand(["serve", "--help"]);
    expect(help.code).toBe(0);
    expect(help.stdout).toContain("GATEHOUSE_MAXIMUM_LOCKOUT");
  });

  test("a folder that others may write into, and a file in its place, are refused", async () => {
    const open = testFolder();
    chmodSync(open, 0o777);
    expect(await runServerCommand(["serve", "--data-dir", open, "--port", "0"])).toEqual({
      code: 1,
      stdout: "",
      stderr: `gatehouse-server: Others may write into the data folder ${open}: run \`chmod 700 ${open}\`\n`,
    });
    const file = join(testFolder(), "file");
    writeFileSync(file, "");
    const refused = await callServerCommand(["serve", "--data-dir", file, "--port", "0"]);
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining(`the data folder ${file}`) });
  });
});

test("writes what devices have reported before it ends", async () => {
  const dataDir = testFolder();
  const json = { "content-type": "application/json" };
  const first = await startService({ dataDir });
  const user = await first.setup();
  const post = async (path: string, body: unknown) => {
    const response = await fetch(first.url + path, {
      method: "POST",
      headers: json,
      body: JSON.stringify(body),
    });
    return (await response.json()) as { token: string; tenant: string; uid: string };
  };
  const { token, tenant } = await post("/api/login", user);
  const report = () =>
    post("/api/devices/auth", {
      info: { id: "", pretty_name: "", version: "", arch: "", platform: "" },
      hostname: "gate",
      public_key: "k",
      tenant_id: tenant,
    });
  const lastSeen = async (service: TestService, uid: string) => {
    const headers = { authorization: `Bearer ${token}` };
    const response = await fetch(`${service.url}/api/devices/${uid}`, { headers });
    return Date.parse(((await response.json()) as { last_seen: string }).last_seen);
  };
  const { uid } = await report();
  const enrolled = await lastSeen(first, uid);
  // The service's clock is this machine's, in milliseconds.
  while (Date.now() <= enrolled) await new Promise(setImmediate);
  await report();
  expect(await first.stop()).toBe(0);
  const second = await startService({ dataDir });
  expect(await lastSeen(second, uid)).toBeGreaterThan(enrolled);
  await second.stop();
});
