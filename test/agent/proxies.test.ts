import { expect, it, onTestFinished } from "vitest";
import { proxiesFromEnvironment } from "../../sdk/index.ts";
import { type ForwardProxy, proxied, startForwardProxy } from "../support/forwardProxy.ts";
import { freePort } from "../support/listening.ts";
import { DEVICE, FakeGateway, TENANT } from "./FakeGateway.ts";
import { HeldTiming, startOwnAgent } from "./ownAgent.ts";

const SECRET = "very-secret";
const MAC = "02:00:00:00:00:01";

/** Starts a gateway that the agent reaches only through the proxy, and an agent. */
async function start(proxy: Pick<ForwardProxy, "url">, env: Readonly<Record<string, string>> = {}) {
  const gateway = await FakeGateway.start();
  const address = proxy.url.replace("://", `://ana:${SECRET}@`);
  const proxyFor = proxiesFromEnvironment({ http_proxy: address, ...env });
  const target = { tenant: TENANT, hostname: DEVICE, mac: MAC, timing: new HeldTiming() };
  const agent = startOwnAgent({ ...target, url: proxied(gateway.url), proxyFor });
  onTestFinished(async () => {
    await agent.stop();
    await gateway.stop();
    expect(agent.messages.join() + JSON.stringify(agent.facts)).not.toContain(SECRET);
  });
  return { gateway, agent };
}

it("enrolls, opens its tunnel and picks up connections through the proxy", async () => {
  const proxy = await startForwardProxy({ account: `ana:${SECRET}` });
  onTestFinished(() => proxy.stop());
  const { gateway } = await start(proxy);
  await gateway.tunneled(1);
  expect(await gateway.request("/")).toContain("404");
  const { host } = new URL(proxied(gateway.url));
  expect(proxy.requests).toEqual([
    `POST http://${host}/api/devices/challenge`,
    `POST http://${host}/api/devices/auth`,
    `CONNECT ${host}`,
    `CONNECT ${host}`,
  ]);
});

it("keeps its token if the proxy refuses the tunnel, and logs the proxy", async () => {
  const proxy = await startForwardProxy();
  onTestFinished(() => proxy.stop());
  const { gateway, agent } = await start(proxy);
  await gateway.tunneled(1);
  proxy.refuse(403);
  gateway.closeTunnel();
  // The first pause follows the closed tunnel.
  (await agent.timing.pause()).end();
  (await agent.timing.pause()).end();
  await agent.timing.pause();
  expect(agent.facts.at(-1)).toEqual({
    reason: `the proxy ${proxy.url} refused the connection to ${proxied(gateway.url)} (403)`,
  });
  expect(gateway.enrollments).toHaveLength(1);
});

it("logs a proxy that it cannot reach", async () => {
  const { agent } = await start({ url: `http://127.0.0.1:${await freePort()}` });
  await agent.timing.pause();
  expect(agent.facts.at(-1)?.reason).toMatch(
    /^Cannot connect to the proxy http:\/\/127\.0\.0\.1:\d+: connection refused/,
  );
});
