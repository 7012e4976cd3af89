import { SERVICE_CODES } from "@gatehouse-access/sdk/contract";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { ConnectionPauses } from "../../agent/ConnectionPauses.ts";
import { deviceKey } from "../../agent/identity.ts";
import { testFolder } from "../support/folder.ts";
import { startSshService } from "../support/sshFleet.ts";
import { DEVICE, FakeGateway, TENANT } from "./FakeGateway.ts";
import { HeldTiming, type OwnAgent, startOwnAgent } from "./ownAgent.ts";

const NOW = Date.UTC(2030, 0, 1);

describe("an agent", () => {
  let gateway: FakeGateway;
  let agent: OwnAgent;
  beforeEach(async () => {
    gateway = await FakeGateway.start();
  });
  afterEach(async () => {
    await agent.stop();
    await gateway.stop();
    expect(gateway.faults).toEqual([]);
  });
  const start = () => {
    const timing = new HeldTiming(NOW);
    agent = startOwnAgent({
      url: gateway.url,
      tenant: TENANT,
      hostname: DEVICE,
      mac: "02:00:00:00:00:01",
      timing,
    });
    return timing;
  };

  it.each([408, 425, 429, 500, 502, 503, 504])(
    "keeps its token after status %i, and waits as long as Retry-After requests",
    async (status) => {
      gateway.tunnelRefusal = { status, headers: { "Retry-After": "120" } };
      const timing = start();
      for (let attempt = 1; attempt <= 3; attempt += 1) {
        const pause = await timing.pause();
        expect(pause.ms).toBe(120_000);
        expect(gateway.tunnels).toHaveLength(attempt);
        pause.end();
      }
      await timing.pause();
      expect(gateway.enrollments).toHaveLength(1);
    },
  );

  it.each([
    ["an HTTP date", new Date(NOW + 90_000).toUTCString(), 90_000],
    ["more than ten minutes", "86400", 600_000],
    ["a date in the past", new Date(NOW - 90_000).toUTCString(), 0],
    ["an unknown value", "soon", 0],
  ])("reads a Retry-After with %s", async (_what, value, ms) => {
    gateway.tunnelRefusal = { status: 429, headers: { "Retry-After": value } };
    expect((await start().pause()).ms).toBe(ms);
  });

  const unknownNamespace = {
    status: 404,
    body: JSON.stringify({ message: "tenant_id: no such namespace", code: SERVICE_CODES.notFound }),
  };

  it("ends with an error if the service proves that it has no such namespace", async () => {
    gateway.enrollmentRefusal = unknownNamespace;
    start();
    await expect(agent.ended).rejects.toThrow(
      `The service ${gateway.url} has no namespace ${TENANT}. Set --tenant (GATEHOUSE_AGENT_TENANT) to the id of a namespace`,
    );
    expect(gateway.enrollments).toHaveLength(1);
  });

  it.each([
    ["a 404 that a proxy can send", { status: 404, body: '{"message":"no such namespace"}' }],
    ["an empty 404", { status: 404 }],
    ["another status with the code", { ...unknownNamespace, status: 403 }],
  ])("enrolls again after %s", async (_what, refusal) => {
    gateway.enrollmentRefusal = refusal;
    const timing = start();
    for (let attempt = 1; attempt <= 3; attempt += 1) (await timing.pause()).end();
    expect(gateway.enrollments.length).toBeGreaterThanOrEqual(3);
  });

  it("enrolls again after its namespace was deleted, because an operator can restore a backup", async () => {
    gateway.tunnelRefusal = { status: 404 };
    const timing = start();
    const first = await timing.pause();
    gateway.enrollmentRefusal = unknownNamespace;
    first.end();
    for (let attempt = 1; attempt <= 3; attempt += 1) (await timing.pause()).end();
    expect(gateway.enrollments.length).toBeGreaterThanOrEqual(3);
  });

  it.each([401, 403, 404])("enrolls once after its token was refused with status %i", async (status) => {
    const timing = start();
    await agent.logged("tunnel open");
    gateway.tunnelRefusal = { status };
    gateway.closeTunnel();
    (await timing.pause()).end();
    const afterRefusal = await timing.pause();
    gateway.tunnelRefusal = undefined;
    afterRefusal.end();
    await agent.logged("tunnel open", 2);
    expect(gateway.enrollments).toHaveLength(2);
    expect(gateway.tunnels).toEqual([101, status, 101]);
  });

  it("sends a refused enrollment once for each pause, and waits as long as Retry-After requests", async () => {
    gateway.enrollmentRefusal = { status: 429, headers: { "Retry-After": "7" } };
    const timing = start();
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      const pause = await timing.pause();
      expect(pause.ms).toBe(7_000);
      expect(gateway.enrollments).toHaveLength(attempt);
      pause.end();
    }
    await timing.pause();
    expect(gateway.tunnels).toEqual([]);
  });
});

describe("the pauses between attempts", () => {
  it("grow up to 30 seconds, and begin again after a lasting tunnel", () => {
    const pauses = new ConnectionPauses(() => 0.5);
    const next = () => pauses.next();
    expect([next(), next(), next(), next(), next()]).toEqual([2_500, 5_000, 10_000, 15_000, 15_000]);
    pauses.reset();
    expect(next()).toBe(2_500);
  });

  it("are a random part of the maximum in addition to the requested time, so that a fleet spreads", () => {
    const later = (random: number) => new ConnectionPauses(() => random).next(60_000);
    expect([later(0), later(0.5), later(0.999)]).toEqual([60_000, 62_500, 64_995]);
  });
});

describe("60 devices of which the service lets 50 have a tunnel", () => {
  it("enroll once each, although the service refuses tunnels again and again", {
    tags: ["long"],
    timeout: 300_000,
  }, async () => {
    const { service, tenant, stop } = await startSshService();
    onTestFinished(stop);
    const agents: OwnAgent[] = [];
    onTestFinished(async () => void (await Promise.all(agents.map((agent) => agent.stop()))));
    const key = deviceKey(testFolder());
    const startAgents = (count: number) => {
      const started = Array.from({ length: count }, (_, index) => {
        const number = agents.length + index;
        const mac = `02:00:00:00:00:${number.toString(16).padStart(2, "0")}`;
        return startOwnAgent({ url: service.url, tenant, hostname: `edge-${number}`, mac, key });
      });
      agents.push(...started);
      return started;
    };
    // On a busy machine, an attempt can fail, and the agent must try again.
    await Promise.all(
      startAgents(50).map(({ timing, logged }) => {
        timing.release();
        return logged("tunnel open");
      }),
    );
    await Promise.all(
      startAgents(10).map(async ({ timing }) => {
        for (let refusal = 0; refusal < 4; refusal += 1) {
          const pause = await timing.pause();
          expect(pause.ms).toBe(60_000);
          pause.end();
        }
        await timing.pause();
      }),
    );
    const enrollments = agents.map(({ messages }) => messages.filter((text) => text === "enrolled").length);
    expect(enrollments).toEqual(agents.map(() => 1));
  });
});
