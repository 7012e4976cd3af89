import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { userInfo } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { agentCall } from "../support/fleet.ts";
import { gatehouse, spawnGatehouse } from "../support/gatehouse.ts";
import { listening } from "../support/listening.ts";
import {
  acceptWithKey,
  CLIENT,
  newKey,
  openFolder,
  type SshService,
  startAgent,
  startSshService,
  type TestAgent,
  withoutSsh,
} from "../support/sshFleet.ts";

const ENDPOINT = "gate.example.org:2222";
const folder = openFolder();
let fleet: SshService;
let env: Record<string, string>;

beforeAll(async () => {
  fleet = await startSshService({ flags: ["--ssh-endpoint", ENDPOINT] });
  const { service, user, tenant } = fleet;
  env = {
    GATEHOUSE_URL: service.url,
    GATEHOUSE_USERNAME: user.username,
    GATEHOUSE_PASSWORD: user.password,
    GATEHOUSE_TENANT: tenant,
  };
  await enroll("web-10", ["prod"]);
  await enroll("web-2", ["prod"]);
  const offline = await enroll("db-1", ["store"]);
  await fleet.client.offlineDevice({ params: { uid: offline } });
  await agentCall(fleet.client, "waiting", "02:00:00:00:00:99", tenant);
});
afterAll(async () => {
  await fleet?.stop();
  folder.remove();
});

let enrolled = 0;
async function enroll(hostname: string, tags: string[]): Promise<string> {
  const { client, tenant } = fleet;
  enrolled += 1;
  const { uid } = await agentCall(client, hostname, `02:00:00:00:00:0${enrolled}`, tenant);
  await client.acceptDevice({ params: { uid } });
  await client.updateDeviceTags({ params: { uid }, body: { tags } });
  return uid;
}

const print = (...args: readonly string[]) => gatehouse(["ssh-config", ...args], env);
const hostsOf = (stdout: string) => [...stdout.matchAll(/^Host (\S+)/gm)].map((match) => match[1]);
const hosts = async (...args: readonly string[]) => hostsOf((await print(...args)).stdout);

describe("the devices", () => {
  it("are all accepted devices by name, each with its own block", async () => {
    const { code, stdout, stderr } = await spawnGatehouse(["ssh-config", "--login", "root"], env);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(hostsOf(stdout)).toEqual(["db-1", "web-2", "web-10"]);
    const { namespace } = fleet;
    expect(stdout).toContain(
      [
        "",
        `Host web-2 web-2.${namespace}`,
        "  HostName gate.example.org",
        "  Port 2222",
        `  User root@${namespace}.web-2`,
        "  ServerAliveInterval 30",
        "",
      ].join("\n"),
    );
    expect(stdout.slice(0, stdout.indexOf("\n\n"))).toMatch(/^(#.*\n)*# 3 devices\.$/);
  });

  it("are filtered by tag, by name, and by `--online`", async () => {
    expect(await hosts("--tag", "prod")).toEqual(["web-2", "web-10"]);
    expect(await hosts("--tag", "store", "--device", "*-2")).toEqual(["db-1", "web-2"]);
    expect(await hosts("--online")).toEqual(["web-2", "web-10"]);
  });

  it("fail if a selector matches no device, or if no device remains", async () => {
    const unknown = await print("--tag", "prd");
    expect(unknown).toMatchObject({ code: 1, stdout: "" });
    expect(unknown.stderr).toContain(
      "The selector tag:prd matches none of the namespace's 3 accepted devices. Similar names: prod.",
    );
    const none = await print("--device", "db-1", "--online");
    expect(none).toMatchObject({ code: 1, stdout: "" });
    expect(none.stderr).toContain("none of these devices is online");
  });

  it("are skipped with exit code 2 if their names would change the configuration", async () => {
    // This proxy simulates a hostile service that returns a device name with a line break. The real service stores no
    // such name.
    const proxy = await listening(
      createServer(async ({ url = "", headers }, answer) => {
        const key = String(headers["x-api-key"]);
        const response = await fetch(fleet.service.url + url, { headers: { "x-api-key": key } });
        const body = (await response.text()).replaceAll('"web-2"', '"web-2\\n  ProxyCommand id"');
        answer.writeHead(response.status, { "content-type": "application/json" }).end(body);
      }),
    );
    const created = await fleet.client.createApiKey({
      body: { name: "reader", role: "observer", expiresAt: 30 },
    });
    const hostile = { GATEHOUSE_URL: proxy.url, GATEHOUSE_API_KEY: created.id };
    const { code, stdout, stderr } = await gatehouse(["ssh-config"], hostile);
    await proxy.stop();
    expect(stderr).toBe(
      `Skipped ${fleet.namespace}.web-2\\u{a}  ProxyCommand id: its name is unsafe in an SSH configuration.\n`,
    );
    expect(stdout).not.toContain("ProxyCommand");
    expect(hostsOf(stdout)).toEqual(["db-1", "web-10"]);
    expect(code).toBe(2);
  });
});

describe("the login and the gateway", () => {
  it("default to the local user and the service's published address", async () => {
    const user = /^ {2}User (.*)@/m;
    expect(user.exec((await print("--device", "db-1")).stdout)?.[1]).toBe(userInfo().username);
    const { stdout } = await print("--login", "deploy", "--gateway", "[2001:db8::1]:22022");
    expect(user.exec(stdout)?.[1]).toBe("deploy");
    expect(stdout).toContain("  HostName 2001:db8::1\n  Port 22022\n");
    expect((await print("--gateway", "other.example.org")).stdout).toContain(
      "  HostName other.example.org\n  Port 22\n",
    );
  });

  it.each([
    ["--login", "root@x"],
    ["--login", "a b"],
    ["--login", "-oProxyCommand=id"],
    ["--login", "root\nHost *"],
    ["--gateway", "gate.example.org:0"],
    ["--gateway", "gate.example.org:99999"],
    ["--gateway", "[1.2.3]:22"],
    ["--gateway", "a b"],
    ["--gateway", "gate\n  ProxyCommand id"],
  ])("are rejected if unsafe: %s %j", async (flag, value) => {
    const { code, stdout, stderr } = await print(`${flag}=${value}`);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toContain(`error: ${flag} must `);
  });
});

describe.skipIf(withoutSsh)(`OpenSSH${withoutSsh ? ` (${withoutSsh})` : ""}`, () => {
  let agent: TestAgent;
  let key: string;
  beforeAll(async () => {
    const { service, tenant } = fleet;
    agent = await startAgent({ url: service.url, tenant, hostname: "edge-1", folder: folder.path });
    key = newKey(folder.path, "key");
    await acceptWithKey(fleet, agent.uid, key);
  });
  afterAll(() => agent?.stop());

  const written = async (...args: readonly string[]) => {
    const file = join(folder.path, "gatehouse.conf");
    writeFileSync(file, (await print(...args)).stdout);
    return file;
  };

  it("reads the configuration: user, host name and port of each alias", async () => {
    const file = await written("--login", "deploy");
    for (const alias of ["web-10", `web-10.${fleet.namespace}`]) {
      const lines = execFileSync("ssh", ["-T", "-G", "-F", file, alias], { encoding: "utf8" }).split("\n");
      expect(lines).toContain(`user deploy@${fleet.namespace}.web-10`);
      expect(lines).toContain("hostname gate.example.org");
      expect(lines).toContain("port 2222");
    }
  });

  it("logs in to a device by its name", async () => {
    const file = await written("--login", "root", "--gateway", `127.0.0.1:${fleet.port}`);
    const args = ["-F", file, ...CLIENT, "-o", "BatchMode=yes", "-i", key, "edge-1", "echo in"];
    expect(execFileSync("ssh", args, { encoding: "utf8" })).toBe("in\n");
  });
});
