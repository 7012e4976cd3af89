import fc from "fast-check";
import { afterEach, expect, test } from "vitest";
import { foldDeviceCounts } from "../../../server/features/devices/deviceCounts.ts";
import { expectExactCounts } from "../db/deviceCounts.ts";
import { reportOf, startApp, type TestApp, type TestUser } from "../http/testApp.ts";

let app: TestApp;
afterEach(() => app.stop());

const SPACES = ["lab", "shop"];
const DEVICES = 4;

interface Step {
  readonly space: number;
  readonly device: number;
  readonly act: "native" | "connector" | "accept" | "reject" | "pending" | "delete" | "choose" | "end";
}

const act = fc.oneof(
  { arbitrary: fc.constantFrom<Step["act"]>("native", "connector"), weight: 4 },
  { arbitrary: fc.constantFrom<Step["act"]>("accept", "reject", "pending", "delete"), weight: 6 },
  { arbitrary: fc.constantFrom<Step["act"]>("choose", "end"), weight: 1 },
);
const step: fc.Arbitrary<Step> = fc.record({
  space: fc.nat(SPACES.length - 1),
  device: fc.nat(DEVICES - 1),
  act,
});

/**
 * Sends the request that a generated step describes. The service may refuse the request, since other steps run
 * concurrently.
 */
async function runStep({ space, device, act }: Step, owners: readonly TestUser[]): Promise<void> {
  const owner = owners[space] as TestUser;
  const uid = uids.get(`${space} ${device}`) ?? "0".repeat(64);
  switch (act) {
    case "native":
    case "connector": {
      const info = { ...reportOf("", "").info, platform: act };
      const answer = await app.call("authDevice", {
        body: reportOf(owner.tenant, `host-${device}`, { info }),
      });
      if (answer.status === 200) uids.set(`${space} ${device}`, answer.body.uid);
      return;
    }
    case "delete":
      await owner.call("deleteDevice", { params: { uid } });
      return;
    case "choose":
      await owner.call("choiceDevices", { body: { choices: [uid] } });
      return;
    case "end":
      await owner.call("deleteNamespace");
      return;
    default:
      await owner.call("updateDeviceStatus", { params: { uid, status: act } });
  }
}

const uids = new Map<string, string>();

test("counts devices exactly under concurrent changes", async () => {
  app = await startApp({ edition: "cloud" });
  const { services } = app;
  let run = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(step, { minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 8 }),
      async (rounds) => {
        run += 1;
        uids.clear();
        const owners = await Promise.all(
          SPACES.map((name) => app.user(`${name}-${run}`, `${name}-space-${run}`)),
        );
        for (const steps of rounds) {
          await Promise.all([...steps.map((one) => runStep(one, owners)), foldDeviceCounts(services)]);
          await expectExactCounts(services.db);
        }
      },
    ),
    { numRuns: 25 },
  );
  expect(await services.db.deviceCount.count()).toBeGreaterThan(0);
});

test("deletes the counts of a deleted namespace", async () => {
  app = await startApp();
  const { db } = app.services;
  const owners = [await app.user("ana", "lab"), await app.user("eve", "shop")];
  for (let device = 0; device < DEVICES; device += 1) {
    for (const space of [0, 1]) await runStep({ space, device, act: "native" }, owners);
  }
  await runStep({ space: 0, device: 0, act: "end" }, owners);
  const remaining = await db.deviceCount.findMany();
  expect(new Set(remaining.map(({ tenantId }) => tenantId))).toEqual(new Set([owners[1]?.tenant]));
  await expectExactCounts(db);
});

test("changes no count for unchanged reports", async () => {
  app = await startApp();
  const { db } = app.services;
  const owners = [await app.user("ana", "lab")];
  await runStep({ space: 0, device: 0, act: "native" }, owners);
  const before = await db.deviceCount.findMany();
  app.pass(60);
  await runStep({ space: 0, device: 0, act: "native" }, owners);
  await app.services.heartbeats.flush();
  expect(await db.deviceCount.findMany()).toEqual(before);
});
