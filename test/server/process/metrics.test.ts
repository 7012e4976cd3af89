import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { testFolder } from "../../support/folder.ts";
import { runServerCommand, testService } from "../../support/service.ts";

const TOKEN = "a-token-for-the-scraper";

async function start(env: Record<string, string>) {
  const service = await testService({ env: { GATEHOUSE_METRICS_ADDRESS: "127.0.0.1:0", ...env } });
  const line = service.logs().find(({ msg }) => msg.startsWith("metrics open at "));
  return { service, metrics: `${line?.msg.slice("metrics open at ".length)}/metrics` };
}

function tokenFile(text: string, mode = 0o600): string {
  const file = join(testFolder(), "token");
  writeFileSync(file, text);
  chmodSync(file, mode);
  return file;
}

test("serves metrics only on their own address", async () => {
  const { service, metrics } = await start({});
  await fetch(`${service.url}/info`);
  const answer = await fetch(metrics);
  expect([answer.status, answer.headers.get("content-type")]).toEqual([
    200,
    expect.stringContaining("text/plain"),
  ]);
  expect(await answer.text()).toContain("process_cpu_seconds_total");
  // The service counts a request after it has sent the response, so the count can change after the client has received
  // the response.
  await expect
    .poll(async () => (await fetch(metrics)).text())
    .toContain('gatehouse_requests_total{operation="getInfo",status="200"} 1');
  expect((await fetch(`${service.url}/metrics`)).status).toBe(404);
  expect((await fetch(metrics.replace("/metrics", "/info"))).status).toBe(404);
  expect(await service.stop()).toBe(0);
});

test("with a token, serves metrics only to clients that send it", { tags: ["long"] }, async () => {
  const { service, metrics } = await start({ GATEHOUSE_METRICS_TOKEN_FILE: tokenFile(`${TOKEN}\n`) });
  const status = async (headers: Record<string, string>) => (await fetch(metrics, { headers })).status;
  expect(await status({ authorization: `Bearer ${TOKEN}` })).toBe(200);
  expect(await status({ authorization: `Bearer ${TOKEN}x` })).toBe(401);
  expect(await status({ authorization: TOKEN })).toBe(401);
  expect(await status({})).toBe(401);
  expect(service.output()).not.toContain(TOKEN);
});

test.each([
  ["too short", "short", 0o600, "at least 16 characters"],
  ["readable by other users", TOKEN, 0o644, "Run `chmod o= "],
])("a token that is %s keeps the service from starting", async (_, text, mode, message) => {
  const env = {
    GATEHOUSE_METRICS_ADDRESS: "127.0.0.1:0",
    GATEHOUSE_METRICS_TOKEN_FILE: tokenFile(text, mode),
  };
  const refused = await runServerCommand(["serve", "--data-dir", testFolder(), "--port", "0"], { env });
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining(message)]);
  expect(refused.stderr).not.toContain(text);
});
