import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { inventoryOf, WATCHED_KINDS } from "../../provider/estate/liveObjects.ts";
import { readEstate } from "../../provider/estate/namespaceState.ts";
import { definitions } from "../../provider/resources/index.ts";
import { Connection } from "../../provider/service/connection.ts";
import { type Fleet, startFleet } from "../support/fleet.ts";
import { requestsDuring } from "../support/requests.ts";
import { Harness, type Program } from "./support/harness.ts";
import { sshKeyLine } from "./support/programs.ts";
import { sampleOf } from "./support/samples.ts";
import { startWorld, type World } from "./support/world.ts";

/** Writes of one step, where they are not one: the table of requests in the reference. */
const WRITES: Record<string, { create?: number; delete?: number; local?: readonly string[] }> = {
  // Settings other than the defaults are a second request.
  Namespace: { create: 2, local: ["forceDestroy"] },
  ApiKey: { local: ["rotateBefore", "overlap"] },
  // Only renaming is a request.
  Tag: { create: 0, delete: 0 },
  // Its status is as declared already.
  Device: { local: ["onDestroy"] },
};

describe("requests of one resource", () => {
  let world: World;
  let harness: Harness;
  beforeAll(async () => {
    world = await startWorld();
  });
  afterAll(() => world.stop());
  beforeEach(() => {
    harness = new Harness(world.env);
  });
  afterEach(async () => {
    await harness.up({});
    await harness.close();
    await world.restoreDevices();
  });

  const isWrite = (request: string) => !/^GET |^POST \/api\/login|^POST \/api\/auth\/user/.test(request);
  const writesOf = async (work: () => Promise<unknown>) =>
    (await requestsDuring(world.service, work)).filter(isWrite);

  it.each(definitions.map((definition) => ({ type: definition.name, definition })))(
    "$type: one write for each create, update and delete, none for nothing",
    async ({ type, definition }) => {
      const { base, changes } = sampleOf(definition);
      const table = WRITES[type] ?? {};
      const program = (args: Record<string, unknown>): Program => ({ it: { type, args: world.here(args) } });
      expect(await writesOf(() => harness.up(program(base)))).toHaveLength(table.create ?? 1);
      expect(await requestsDuring(world.service, () => harness.up(program(base)))).toEqual([]);
      expect(await requestsDuring(world.service, () => harness.preview(program(base)))).toEqual([]);
      for (const [field, value] of changes) {
        if (definition.inputs[field]?.replaces) continue;
        const expected = table.local?.includes(field) ? 0 : 1;
        for (const args of [{ ...base, [field]: value }, base]) {
          expect(await writesOf(() => harness.up(program(args))), field).toHaveLength(expected);
        }
      }
      // Tags are removed one by one.
      const tags = Array.isArray(base.tags) ? base.tags.length : 1;
      const deletes = type === "DeviceTags" ? tags : base.onDestroy === "keep" ? 0 : (table.delete ?? 1);
      expect(await writesOf(() => harness.up({}))).toHaveLength(deletes);
    },
  );

  it("none for the objects of a namespace whose facts were read", async () => {
    const connection = new Connection(world.client);
    await readEstate(connection, world.tenant);
    const requests = await requestsDuring(world.service, async () => {
      const { objects } = await inventoryOf(connection, world.tenant, WATCHED_KINDS);
      expect(objects).not.toEqual([]);
    });
    expect(requests).toEqual([]);
  });
});

/** Three pages and a part show what twelve do. */
const SIZES = [
  { keys: 250, devices: 310, options: {} },
  { keys: 1000, devices: 1200, options: { tags: ["long"] } },
];

for (const { keys: KEYS, devices: DEVICES, options } of SIZES)
  describe("reads of many", options, () => {
    let fleet: Fleet;
    let harness: Harness;
    const uids: string[] = [];
    const keys: Program = {};

    beforeAll(async () => {
      fleet = await startFleet();
      await fleet.enrolMany(DEVICES);
      for await (const device of fleet.client.iterate("getDevices", { query: { perPage: 100 } }))
        uids.push(device.uid);
      harness = new Harness(fleet.env);
      for (let index = 0; index < KEYS; index += 1) {
        const args = {
          name: `k${index}`,
          data: sshKeyLine(),
          username: "^root$",
          filter: { hostname: ".*" },
        };
        keys[`key-${index}`] = { type: "PublicKey", args };
      }
      await harness.up(keys);
    });
    afterAll(async () => {
      await harness.close();
      await fleet.stop();
    });

    it(`${KEYS} keys are read in pages`, { timeout: 60_000 }, async () => {
      const requests = await requestsDuring(fleet.service, async () => {
        expect(await harness.refresh()).toEqual([]);
      });
      expect(requests.length).toBeLessThanOrEqual(KEYS / 100 + 5);
    });

    const tagged = (names: readonly string[]): Program =>
      Object.fromEntries(
        names.map((device) => [`tags-${device}`, { type: "DeviceTags", args: { device, tags: ["edge"] } }]),
      );

    it(`5 devices of ${DEVICES} are read one by one`, async () => {
      const few = new Harness(fleet.env);
      await few.up(tagged(uids.slice(0, 5)));
      const requests = await requestsDuring(fleet.service, async () => {
        expect(await few.refresh()).toEqual([]);
      });
      const reads = requests.filter((request) => request.startsWith("GET /api/devices"));
      expect(reads).toHaveLength(5);
      expect(reads.every((request) => request.startsWith("GET /api/devices/"))).toBe(true);
      await few.close();
    });

    it(`${DEVICES} devices that report while their list is read are never taken for deleted`, {
      timeout: 180_000,
    }, async () => {
      const many = new Harness(fleet.env);
      await many.up(tagged(uids));
      let stopped = false;
      let reports = 0;
      const beats = Array.from({ length: 8 }, async (_, worker) => {
        for (let index = worker; !stopped; index = (index + 8) % uids.length) {
          await fleet.report(index);
          reports += 1;
        }
      });
      for (let round = 0; round < 5 || reports <= 100; round += 1) {
        const requests = await requestsDuring(fleet.service, async () => {
          expect(await many.refresh()).toEqual([]);
        });
        const lists = requests.filter((request) => request === "GET /api/devices");
        expect(lists.length).toBe(Math.ceil(DEVICES / 100));
      }
      stopped = true;
      await Promise.all(beats);
      await many.close();
    });
  });
