import { once } from "node:events";
import { Agent, request } from "undici";
import { describe, expect, onTestFinished, test } from "vitest";
import { call } from "../../support/call.ts";
import { type TestService, testService } from "../../support/service.ts";
import { gatewayPidOf } from "../../support/sshFleet.ts";

/** Time limits on a busy machine, where a service takes long to start. */
const slowly = { timeout: 240_000 };
const patiently = { timeout: 100_000, interval: 20 };

/** Returns the service's reason for not being ready; "ok" if it is ready. */
async function readinessOf(service: TestService): Promise<string> {
  const { status, body } = await call(service, "GET /readyz");
  return status === 200 ? body.status : body.message;
}

/** Returns the id of the gateway process. Another thread writes the log, so its line may follow a response. */
async function pidOf(service: TestService): Promise<number> {
  await expect.poll(() => gatewayPidOf(service), patiently).toBeDefined();
  return gatewayPidOf(service) as number;
}

/** Waits until the service is ready. */
const ready = (service: TestService) => expect.poll(() => readinessOf(service), patiently).toBe("ok");

describe.skipIf(process.platform === "win32")("a service with an SSH port", slowly, () => {
  test("is not ready while its gateway process is being restarted, and logs how the process ended", {
    tags: ["long"],
  }, async () => {
    const service = await testService({ flags: ["--ssh-port", "0"] });
    await ready(service);
    // Each end of the process doubles the pause before its restart, so that a probe certainly finds the pause.
    const killed = new Set<number>();
    const kill = async () => {
      const pid = await pidOf(service);
      if (!killed.has(pid)) process.kill(pid, "SIGKILL");
      killed.add(pid);
      return readinessOf(service);
    };
    await expect.poll(kill, patiently).toBe("the SSH gateway is being restarted");
    await ready(service);
    await expect.poll(() => killed.has(gatewayPidOf(service) ?? 0), patiently).toBe(false);
    const ends = () => service.logs().filter(({ msg }) => msg.startsWith("the gateway process has ended"));
    await expect.poll(ends, patiently).toHaveLength(killed.size);
    for (const end of ends()) expect(end).toMatchObject({ code: null, signal: "SIGKILL" });
  });

  test("is not ready while its gateway process hangs", { tags: ["long"] }, async () => {
    const service = await testService({ flags: ["--ssh-port", "0"] });
    // The service kills a process that hangs. On a busy machine, a probe may miss the time before, so that the next
    // process is stopped too.
    const stopped = new Set<number>();
    const hang = async () => {
      const pid = await pidOf(service);
      if (!stopped.has(pid)) process.kill(pid, "SIGSTOP");
      stopped.add(pid);
      return readinessOf(service);
    };
    await expect.poll(hang, patiently).toBe("the SSH gateway does not respond");
    expect((await call(service, "GET /healthz")).status).toBe(200);
    await ready(service);
    await expect.poll(() => stopped.has(gatewayPidOf(service) ?? 0), patiently).toBe(false);
  });
});

describe("a service that is stopped", slowly, () => {
  test("is not ready at once, and serves requests on connections that end after one response", async () => {
    const service = await testService({ env: { GATEHOUSE_LAME_DUCK: "3600" } });
    const dispatcher = new Agent({ connections: 1, pipelining: 1 });
    onTestFinished(() => dispatcher.close());
    const user = await service.setup();
    const send = async (path: string, body?: object) => {
      const json = body && { body: JSON.stringify(body), headers: { "content-type": "application/json" } };
      const answer = await request(`${service.url}${path}`, {
        dispatcher,
        method: body ? "POST" : "GET",
        ...json,
      });
      await answer.body.dump();
      return [answer.statusCode, answer.headers.connection];
    };
    expect(await send("/info")).toEqual([200, "keep-alive"]);
    const closed = once(dispatcher, "disconnect");
    process.kill(service.pid, "SIGTERM");
    await expect.poll(() => readinessOf(service), patiently).toBe("the service is being stopped");
    expect(await send("/info")).toEqual([200, "close"]);
    await closed;
    expect(await send("/api/login", user)).toEqual([200, "close"]);
    expect((await call(service, "GET /healthz")).status).toBe(200);
    await expect
      .poll(() => service.logs(), patiently)
      .toContainEqual(expect.objectContaining({ msg: expect.stringContaining("not ready"), seconds: 3600 }));
    // The second signal ends the service without the rest of the time.
    expect(await service.stop()).toBe(1);
  });

  test("logs its stop, the lame-duck time and its end in this order", { tags: ["long"] }, async () => {
    const service = await testService({ env: { GATEHOUSE_LAME_DUCK: "1" }, flags: ["--ssh-port", "0"] });
    expect(await service.stop()).toBe(0);
    const order = ["stopping", "not ready; requests and logins are served for this time", "stopped"];
    expect(service.logs().flatMap(({ msg }) => (order.includes(msg) ? [msg] : []))).toEqual(order);
  });
});
