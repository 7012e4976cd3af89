import { chmodSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { boundedStart } from "../../../server/process/boundMemory.ts";
import { call } from "../../support/call.ts";
import { testFolder } from "../../support/folder.ts";
import { postgresqlAddress } from "../../support/postgresql/database.ts";
import { callServerCommand } from "../../support/serverCommand.ts";
import {
  KEPT_FILES,
  runServerCommand,
  startService,
  type TestService,
  testService,
} from "../../support/service.ts";
import { shared } from "../../support/shared.ts";
import { newSqlite } from "../../support/sqlite.ts";
import { expectFailure } from "./failure.ts";
import { internalToken, internalUrl, startInternal } from "./internalListener.ts";

/**
 * Creates a data folder whose database already has its tables. A service that fails to start then creates no tables.
 */
async function newDataFolder(): Promise<string> {
  const folder = testFolder();
  await newSqlite(join(folder, "gatehouse.db"));
  return folder;
}

describe("a running service", () => {
  const service = shared(startService);

  test("responds to probes without a login", async () => {
    for (const path of ["/healthz", "/readyz"]) {
      const response = await fetch(`${service.url}${path}`);
      expect([response.status, await response.json()]).toEqual([200, { status: "ok" }]);
    }
  });

  test("keeps all its files accessible only to its user", () => {
    expect(readdirSync(service.dataDir).sort()).toEqual(
      expect.arrayContaining(["admin.sock", ...KEPT_FILES]),
    );
    for (const name of readdirSync(service.dataDir)) {
      expect([name, statSync(join(service.dataDir, name)).mode & 0o777]).toEqual([name, 0o600]);
    }
  });

  test.skipIf(process.platform !== "linux")("has restarted itself with flags that limit its memory", () => {
    const [, ...flags] = readFileSync(`/proc/${service.pid}/cmdline`, "utf8").split("\0");
    expect(flags).toEqual(expect.arrayContaining(boundedStart([], {}).flags as string[]));
  });

  test("logs its address in one line", () => {
    const lines = service.logs().filter((line) => line.msg === "listening");
    expect(lines).toEqual([expect.objectContaining({ address: service.url, dataDir: service.dataDir })]);
  });

  test("is the only service on its data folder", async () => {
    const again = ["serve", "--data-dir", service.dataDir, "--port", "0"];
    expectFailure(
      await callServerCommand(again),
      postgresqlAddress() === undefined
        ? /^gatehouse-server: The database .* is in use by another process[^\n]*\n$/
        : /^gatehouse-server: Another gatehouse-server process is using the data folder [^\n]*\n$/,
    );
    const elsewhere = `file:${join(testFolder(), "other.db")}`;
    expectFailure(
      await callServerCommand([...again, "--database-url", elsewhere]),
      /^gatehouse-server: Another gatehouse-server process is using the data folder [^\n]*\n$/,
    );
    // The failed starts have not affected the first service.
    expect((await service.admin(["setup-link"])).code).toBe(0);
    expect((await fetch(`${service.url}/readyz`)).status).toBe(200);
  });

  test("keeps its port, and a second service reports that the port is in use", async () => {
    const { port } = new URL(service.url);
    const second = await runServerCommand(["serve", "--data-dir", await newDataFolder(), "--port", port]);
    expect(second.code).toBe(1);
    expect(second.stderr).toMatch(
      new RegExp(
        `^gatehouse-server: Cannot listen on 127.0.0.1 port ${port} \\(--host, --port\\): [^\\n]*EADDRINUSE[^\\n]*\\n$`,
      ),
    );
  });
});

describe("the listener for internal operations", () => {
  const authorized = (token: string) => ({ headers: { "X-Internal-Token": token } });
  const statusOf = async (url: string, token: string) => (await fetch(url, authorized(token))).status;

  test("reads its token from a file, does not log it, and has its own port", { tags: ["long"] }, async () => {
    const file = join(testFolder(), "token");
    writeFileSync(file, `${internalToken}\n`);
    const service = await startInternal({
      GATEHOUSE_INTERNAL_TOKEN: "",
      GATEHOUSE_INTERNAL_TOKEN_FILE: file,
      GATEHOUSE_LOG_LEVEL: "trace",
    });
    const at = internalUrl(service);
    // The requests have the token of the internal listener, but no credential of a user.
    expect(await statusOf(`${at}/internal/auth`, internalToken)).toBe(401);
    expect(await statusOf(`${at}/api/devices`, internalToken)).toBe(404);
    expect(await statusOf(`${at}/internal/auth`, `${internalToken}x`)).toBe(403);
    expect(await statusOf(`${service.url}/internal/auth`, internalToken)).toBe(404);
    // A second service with the same internal port does not start, and prints the reason.
    const { port } = new URL(at);
    const args = ["serve", "--data-dir", await newDataFolder(), "--port", "0", "--internal-port", port];
    const second = await runServerCommand(args, { env: { GATEHOUSE_INTERNAL_TOKEN: internalToken } });
    expect(second.code).toBe(1);
    expect(second.stderr).toContain(`port ${port} (--internal-host, --internal-port): `);
    expect(await service.stop()).toBe(0);
    // The test reads the log after the service has ended, because only then is the log complete.
    const requests = service.logs().filter((line) => line.msg === "request" && line.listener === "internal");
    expect(requests.map((line) => line.statusCode)).toEqual([401, 404, 403]);
    expect(service.output()).not.toContain(internalToken);
  });

  test("does not open without a token, and neither does any other listener", async () => {
    const dataDir = join(testFolder(), "data");
    const args = ["serve", "--data-dir", dataDir, "--port", "0", "--internal-port", "0"];
    expectFailure(
      await callServerCommand(args),
      /^gatehouse-server: GATEHOUSE_INTERNAL_PORT [^\n]* is set without GATEHOUSE_INTERNAL_TOKEN[^\n]*\n$/,
    );
    expect(existsSync(dataDir)).toBe(false);
    const flag = await callServerCommand([...args, "--internal-token", internalToken]);
    expect(flag).toMatchObject({ code: 2, stderr: expect.stringContaining("Unknown flag --internal-token") });
  });
});

describe("starting", () => {
  test("later starts keep keys, data, and the devices' last reports before the end", {
    tags: ["long"],
  }, async () => {
    const dataDir = testFolder();
    const first = await startService({ dataDir });
    const sign = (await first.admin(["setup-link", "--sign-only"])).stdout;
    const user = await first.setup();
    const { token, tenant } = (await call(first, "POST /api/login", { body: user })).body;
    const info = { id: "", pretty_name: "", version: "", arch: "", platform: "" };
    const body = { info, hostname: "gate", public_key: "k", tenant_id: tenant };
    const report = async () => (await call(first, "POST /api/devices/auth", { body })).body.uid;
    const uid = await report();
    const lastSeen = async (service: TestService) =>
      Date.parse((await call(service, `GET /api/devices/${uid}`, { token })).body.last_seen);
    const enrolled = await lastSeen(first);
    // The service stores times in milliseconds. The loop waits for the next millisecond, so that the second report has
    // a later time.
    while (Date.now() <= enrolled) await new Promise(setImmediate);
    await report();
    expect(await first.stop()).toBe(0);
    const second = await testService({ dataDir });
    expect(await lastSeen(second)).toBeGreaterThan(enrolled);
    expect((await second.admin(["setup-link", "--sign-only"])).stdout).toBe(sign);
    expect(JSON.parse((await second.admin(["user", "list", "--json"])).stdout)).toMatchObject([
      { username: user.username },
    ]);
    expect([first, second].map((service) => service.output().includes("database migrated"))).toEqual(
      postgresqlAddress() === undefined ? [true, false] : [false, false],
    );
  });

  test("the files of a killed service do not block a start, even if the socket was outside the data folder", {
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

  test("wrong settings are reported on one line each, without a stack, and nothing is created", async () => {
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
      expect.stringContaining('--port (variable GATEHOUSE_PORT) is "http". Set it to'),
      expect.stringContaining("GATEHOUSE_DATABASE_URL (flag --database-url) has an invalid value"),
      expect.stringContaining('GATEHOUSE_EDITION (flag --edition) is "gold". Set it to'),
    ]);
    expect(stderr).not.toContain("pa55word");
    expect(existsSync(dataDir)).toBe(false);
  });

  test("a wrong command line exits with 2, help with 0", async () => {
    expect(await runServerCommand(["serve", "--prot", "1"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("Unknown flag --prot."),
    });
    expect((await callServerCommand(["frobnicate"])).code).toBe(2);
    const help = await callServerCommand(["serve", "--help"]);
    expect(help.code).toBe(0);
    expect(help.stdout).toContain("GATEHOUSE_MAXIMUM_LOCKOUT");
  });

  test("rejects a folder that other users can write to, and a file in its place", async () => {
    const open = testFolder();
    chmodSync(open, 0o777);
    expect(await callServerCommand(["serve", "--data-dir", open, "--port", "0"])).toEqual({
      code: 1,
      stdout: "",
      stderr: `gatehouse-server: Other users may write to the data folder ${open}. Run \`chmod 700 ${open}\`\n`,
    });
    const file = join(testFolder(), "file");
    writeFileSync(file, "");
    expectFailure(
      await callServerCommand(["serve", "--data-dir", file, "--port", "0"]),
      `the data folder ${file}`,
    );
  });
});
