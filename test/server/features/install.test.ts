import { execFile } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { shellAssignments } from "../../../server/features/install/handlers.ts";
import { testFolder } from "../../support/folder.ts";
import { testApp, withSharedApp } from "../http/appOfTest.ts";

const run = promisify(execFile);
const TENANT = "7c1e2f58-0b4d-4f0a-9a44-5b5f0f8a1c22";

const app = withSharedApp({ edition: "community" });

const script = async (query: Record<string, string>, path = "/install.sh") => {
  const { status, text, headers } = await app.send("GET", `${path}?${new URLSearchParams(query)}`);
  return { status, text, type: headers.get("content-type") };
};

/** Creates a PATH folder with a fake container engine. The engine only logs its arguments, one per line. */
function fakeEngine(name: string): { path: string; calls: () => string[][] } {
  const folder = testFolder();
  const bin = join(folder, "bin");
  const log = join(folder, "calls");
  mkdirSync(bin);
  writeFileSync(log, "");
  const inspect = '[ "$1 $2" != "container inspect" ] || exit 1';
  writeFileSync(join(bin, name), `#!/bin/sh\n{ printf '%s\\n' "$@"; echo --; } >> '${log}'\n${inspect}\n`);
  // A fake sudo that runs its arguments.
  writeFileSync(join(bin, "sudo"), '#!/bin/sh\nexec "$@"\n');
  for (const file of [name, "sudo"]) chmodSync(join(bin, file), 0o755);
  const calls = () =>
    readFileSync(log, "utf8")
      .split("--\n")
      .filter((call) => call !== "")
      .map((call) => call.trimEnd().split("\n"));
  return { path: [bin, "/usr/bin", "/bin"].join(delimiter), calls };
}

const execute = (text: string, env: Record<string, string>) =>
  run("/bin/sh", ["-c", text], { env: { PATH: process.env.PATH, ...env } });

test.each(["/install.sh", "/kickstart.sh", "/api/install"])("returns a shell script at %s", async (path) => {
  const { status, text, type } = await script({}, path);
  expect([status, type]).toEqual([200, "text/x-shellscript; charset=utf-8"]);
  expect(text).toMatch(/^#!\/bin\/sh\n/);
  expect(text).not.toContain("@DEFAULTS@");
  await run("/bin/sh", ["-n", "-c", text]);
});

test("starts the agent of the given namespace at this service", async () => {
  const engine = fakeEngine("docker");
  const { text } = await script({
    tenant_id: TENANT,
    preferred_hostname: "gate",
    preferred_identity: 'it\'s a $(touch /tmp/x) `id` "gate" \\',
    keepalive_interval: "45",
  });
  const { stdout } = await execute(text, { PATH: engine.path, CONTAINER_ENGINE: "docker" });
  expect(stdout).toContain(`is pending in the namespace ${TENANT}`);
  const [pull, inspect, start] = engine.calls();
  expect(pull).toEqual(["pull", "registry.example.org/agent:v1"]);
  expect(inspect).toEqual(["container", "inspect", "gatehouse-agent"]);
  expect(start).toEqual(
    expect.arrayContaining([
      "run",
      "--privileged",
      "--name=gatehouse-agent",
      `SHELLHUB_SERVER_ADDRESS=${app.url}`,
      `SHELLHUB_TENANT_ID=${TENANT}`,
      "SHELLHUB_PREFERRED_HOSTNAME=gate",
      'SHELLHUB_PREFERRED_IDENTITY=it\'s a $(touch /tmp/x) `id` "gate" \\',
      "SHELLHUB_KEEPALIVE_INTERVAL=45",
    ]),
  );
  expect(start?.at(-1)).toBe("registry.example.org/agent:v1");
});

test("prefers variables to the query, and supports podman", async () => {
  const engine = fakeEngine("podman");
  const { text } = await script({ tenant_id: TENANT });
  await execute(text, {
    PATH: engine.path,
    CONTAINER_ENGINE: "podman",
    TENANT_ID: "another",
    SERVER_ADDRESS: "https://gate.example.org",
    AGENT_IMAGE: "registry.example.org/other:v2",
  });
  const [pull, , start] = engine.calls();
  expect(pull).toEqual(["pull", "registry.example.org/other:v2"]);
  expect(start).toEqual(
    expect.arrayContaining([
      "SHELLHUB_TENANT_ID=another",
      "SHELLHUB_SERVER_ADDRESS=https://gate.example.org",
      "label=disable",
    ]),
  );
  expect(start?.join("\n")).not.toContain("SHELLHUB_PREFERRED");
});

test.each([
  [{}, "the namespace id is missing. Set TENANT_ID"],
  [{ TENANT_ID: TENANT, CONTAINER_ENGINE: "rm" }, "CONTAINER_ENGINE must be docker or podman"],
])("stops on %j before any action", async (env, reason) => {
  const engine = fakeEngine("docker");
  const { text } = await script({});
  const failed = await execute(text, { PATH: engine.path, ...env }).catch((error) => error);
  expect([failed.code, failed.stderr]).toEqual([1, expect.stringContaining(`install.sh: ${reason}`)]);
  expect(engine.calls()).toEqual([]);
});

test("does nothing if the script was received partially", async () => {
  const engine = fakeEngine("docker");
  const { text } = await script({ tenant_id: TENANT });
  const lines = text.split("\n");
  // Truncates the install script at several lines, as an interrupted download would. The truncated script must never
  // call the container engine: inside the function, it has a syntax error; before the function, it has no effect.
  for (let count = 1; count < lines.length - 1; count += 5) {
    const part = lines.slice(0, count).join("\n");
    await execute(part, { PATH: engine.path, CONTAINER_ENGINE: "docker" }).catch(() => {});
  }
  expect(engine.calls()).toEqual([]);
});

describe("quotes every value", () => {
  test("passes any text to the shell unchanged", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.string({
          maxLength: 40,
          unit: fc.oneof(fc.constantFrom("'", "\\", '"', "$", "`", "\n", ";"), fc.string()),
        }),
        async (value) => {
          fc.pre(!value.includes("\0"));
          const { stdout } = await run("/bin/sh", [
            "-c",
            `${shellAssignments({ value })}printf '%s' "$value"`,
          ]);
          expect(stdout).toBe(value);
        },
      ),
      { numRuns: 60 },
    );
  });

  test.each([
    ["tenant_id", "'; touch /tmp/x; '"],
    ["tenant_id", TENANT.toUpperCase()],
    ["keepalive_interval", "1; id"],
    ["keepalive_interval", "0"],
    ["preferred_hostname", "a b"],
    ["preferred_hostname", "$(id)"],
    ["preferred_identity", "two\nlines"],
    ["preferred_identity", "\u001b[2J"],
    ["preferred_identity", "\u202egate"],
    ["preferred_identity", "a".repeat(65)],
  ])("rejects %s=%j with 400", async (name, value) => {
    const { status, text } = await script({ [name]: value });
    expect(status).toBe(400);
    expect(JSON.parse(text).message).toContain(`${name} m`);
  });

  test("quotes the host of the request", async () => {
    const proxied = await testApp({ trustedProxies: ["127.0.0.1"] });
    const headers = { "x-forwarded-host": "evil'$(id)`id`'" };
    const { text } = await proxied.send("GET", "/install.sh", { headers });
    const program = text.replace(/^main$/m, `printf '%s' "$default_server_address"`);
    expect((await execute(program, {})).stdout).toBe("http://evil'$(id)`id`'");
  });
});
