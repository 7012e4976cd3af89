import { once } from "node:events";
import { expect, it, onTestFinished } from "vitest";
import { startPlugin } from "../plugin/support/pluginProcess.ts";
import { testFolder } from "../support/folder.ts";
import { type ForwardProxy, proxied, startForwardProxy } from "../support/forwardProxy.ts";
import { gatehouse } from "../support/gatehouse.ts";
import { firewallRule } from "../support/policy.ts";
import { testProgram } from "../support/policyProgram.ts";
import { sharedFleet } from "../support/sharedFleet.ts";
import {
  acceptWithKey,
  newKey,
  openFolder,
  ssh,
  startAgent,
  startSshService,
  withoutSsh,
} from "../support/sshFleet.ts";
import {
  hasTerraform,
  RootModule,
  resources,
  ruleArguments,
  startProvider,
} from "../terraform/support/terraform.ts";

const fleet = sharedFleet();
const SECRET = "very-secret";

/** Starts a proxy that requires an account, and returns the environment of a program that reaches the service through it. */
async function start(name = "HTTP_PROXY") {
  const proxy = await startForwardProxy({ account: `ana:${SECRET}` });
  onTestFinished(() => proxy.stop());
  const env: Record<string, string> = {
    ...fleet.env,
    GATEHOUSE_URL: proxied(fleet.service.url),
    [name]: proxy.url.replace("://", `://ana:${SECRET}@`),
  };
  return { proxy, env };
}

/** Returns the methods and paths of the requests that the proxy forwarded to the service. */
const forwarded = ({ requests }: ForwardProxy) =>
  requests.map((request) => request.replace(`${proxied(fleet.service.url)}/`, "/").replace(/\?.*/, ""));

it.each(["HTTP_PROXY", "http_proxy"])(
  "doctor connects through the proxy in %s, and prints it",
  async (name) => {
    const { proxy, env } = await start(name);
    const { stdout, stderr } = await gatehouse(["doctor", testFolder()], env);
    expect(stdout).toContain(`${env.GATEHOUSE_URL} through the proxy ${proxy.url} (${name})`);
    expect(stdout).toContain("namespace admin");
    expect(stdout + stderr).not.toContain(SECRET);
    expect(forwarded(proxy)).toEqual(
      expect.arrayContaining(["GET /info", `GET /api/namespaces/${fleet.tenant}`]),
    );
  },
);

it("a command fails with the proxy, and without the proxy's password", async () => {
  const { proxy, env } = await start();
  const wrong = { ...env, HTTP_PROXY: proxy.url.replace("://", `://ana:${SECRET}1@`) };
  const failed = await gatehouse(["device", "list"], wrong);
  expect(failed.code).toBe(1);
  expect(failed.stderr).toMatch(
    `The proxy ${proxy.url} rejected the user name and password (407). Set HTTP_PROXY to http://user:password@host:port`,
  );
  expect(failed.stderr).not.toContain(SECRET);
  const invalid = await gatehouse(["device", "list"], {
    ...env,
    HTTP_PROXY: `socks5://ana:${SECRET}@127.0.0.1:1`,
  });
  expect(invalid.code).toBe(1);
  expect(invalid.stderr).toMatch("HTTP_PROXY is not the URL of an HTTP proxy");
  expect(invalid.stderr).not.toContain(SECRET);
});

it("a command does not use the proxy for a loopback address and for a host in NO_PROXY", async () => {
  const { proxy, env } = await start();
  const local = { ...env, GATEHOUSE_URL: fleet.service.url };
  expect(await gatehouse(["device", "list"], local)).toMatchObject({ code: 0 });
  const excepted = await gatehouse(["device", "list"], {
    ...env,
    NO_PROXY: "gatehouse.test",
    GATEHOUSE_RETRY_TIMEOUT: "0",
  });
  expect(excepted.stderr).toMatch("the name gatehouse.test does not resolve");
  expect(forwarded(proxy)).toEqual([]);
});

it("a Pulumi program creates its resources through the proxy", { tags: ["long"] }, async () => {
  const { proxy, env } = await start();
  const policy = { rule: firewallRule("deny", 5, { sourceIp: "^192\\.0\\.2\\." }) };
  const stack = testProgram().stack({ env: { ...env, POLICY: JSON.stringify(policy) } });
  expect(await stack.run(["up", "--yes"])).toMatchObject({ code: 0 });
  expect(forwarded(proxy)).toContain("POST /api/firewall/rules");
  expect(await stack.run(["destroy", "--yes"])).toMatchObject({ code: 0 });
});

it("the plugin creates a resource through the proxy", { tags: ["long"] }, async () => {
  const { proxy, env } = await start();
  const { child, client } = await startPlugin(["127.0.0.1:1"], { PATH: process.env.PATH, ...env });
  onTestFinished(async () => {
    client.close();
    child.kill("SIGKILL");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  });
  await client.call("configure");
  const properties = {
    action: "deny",
    priority: 6,
    sourceIp: "^203",
    username: ".*",
    filter: { hostname: ".*" },
  };
  const urn = "urn:pulumi:dev::project::gatehouse:index:FirewallRule::it";
  expect((await client.call("create", { urn, properties })).id).toMatch(/./);
  expect(forwarded(proxy)).toContain("POST /api/firewall/rules");
});

it.runIf(hasTerraform)(
  "the Terraform provider creates a resource through the proxy",
  { tags: ["long"] },
  async () => {
    const { proxy, env } = await start();
    const provider = await startProvider(env);
    onTestFinished(() => provider.stop());
    const module = new RootModule(testFolder(), { ...provider.env, ...env });
    await module.applied(resources({ firewall_rule: { it: ruleArguments({ priority: 7 }) } }));
    expect(forwarded(proxy)).toContain("POST /api/firewall/rules");
  },
);

it.skipIf(withoutSsh)("a login reaches a device whose agent uses the proxy", { tags: ["long"] }, async () => {
  const { proxy, env } = await start();
  const folder = openFolder();
  const sshFleet = await startSshService();
  const url = proxied(sshFleet.service.url);
  const { HTTP_PROXY = "" } = env;
  const place = { url, tenant: sshFleet.tenant, hostname: "edge-01", folder: folder.path };
  const agent = await startAgent({ ...place, env: { HTTP_PROXY }, flags: ["--allow-http", "on"] });
  onTestFinished(async () => {
    await agent.stop();
    await sshFleet.stop();
    folder.remove();
  });
  const key = newKey(folder.path, "key");
  await acceptWithKey(sshFleet, agent.uid, key);
  const to = `root@${sshFleet.namespace}.edge-01`;
  expect(await ssh({ to, port: sshFleet.port, key, command: "echo hello" })).toMatchObject({
    code: 0,
    stdout: "hello\n",
  });
  const { host } = new URL(url);
  expect(proxy.requests.filter((request) => request === `CONNECT ${host}`)).toHaveLength(2);
  expect(agent.output()).toContain(`"proxy":"${proxy.url}","setting":"HTTP_PROXY"`);
  expect(agent.output()).not.toContain(SECRET);
});
