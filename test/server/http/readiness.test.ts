import { expect, onTestFinished, test } from "vitest";
import { buildApp } from "../../../server/app.ts";
import type { GatewayCondition } from "../../../server/gateway/GatewayProcess.ts";
import { healthPlugin } from "../../../server/process/health.ts";
import { withSharedApp } from "./appOfTest.ts";

const app = withSharedApp();

/** Starts an app with probes for a database that works. Returns the response of a probe. */
async function probeOf(facts: {
  readonly gateway?: { readonly condition: GatewayCondition };
  readonly isStopping?: () => boolean;
}) {
  const probed = await buildApp(app.services, app.gateway);
  onTestFinished(() => probed.close());
  const database = { client: app.services.db, tryWrite: async () => {} };
  await probed.register(healthPlugin, { database, ...facts });
  return async (url = "/readyz") => {
    const answer = await probed.inject({ method: "GET", url });
    return [answer.statusCode, answer.json()];
  };
}

const ok = [200, { status: "ok" }];

test("a service with an SSH port is ready only while its gateway accepts logins", async () => {
  const gateway: { condition: GatewayCondition } = { condition: "not started" };
  const probe = await probeOf({ gateway });
  const found: unknown[] = [];
  for (const condition of ["not started", "ready", "restarting", "unresponsive", "ready"] as const) {
    gateway.condition = condition;
    found.push(await probe());
    expect(await probe("/healthz")).toEqual(ok);
  }
  expect(found).toEqual([
    [503, { message: "the SSH gateway does not listen yet" }],
    ok,
    [503, { message: "the SSH gateway is being restarted" }],
    [503, { message: "the SSH gateway does not respond" }],
    ok,
  ]);
});

test("a service without an SSH port does not depend on a gateway", async () => {
  expect(await (await probeOf({}))()).toEqual(ok);
});

test("a service is not ready from the moment in which it is stopped", async () => {
  let isStopping = false;
  const probe = await probeOf({ isStopping: () => isStopping });
  expect(await probe()).toEqual(ok);
  isStopping = true;
  expect(await probe()).toEqual([503, { message: "the service is being stopped" }]);
  expect(await probe("/healthz")).toEqual(ok);
});
