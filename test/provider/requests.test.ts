import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { inventoryOf } from "../../provider/namespace/liveObjects.ts";
import { readNamespace } from "../../provider/namespace/readNamespace.ts";
import { kindsWith } from "../../provider/resources/index.ts";
import { Connection } from "../../provider/service/connection.ts";
import { requestsDuring } from "../support/requests.ts";
import { sharedFleet } from "../support/sharedFleet.ts";
import { Harness, type Program } from "./support/harness.ts";
import { sshKeyLine } from "./support/programs.ts";

/** The numbers of public keys and devices. Both lists have several pages, and the last page is not full. */
const [KEYS, DEVICES] = [120, 210];

describe("reads of many objects", () => {
  const fleet = sharedFleet();
  let harness: Harness;
  const uids: string[] = [];
  const keys: Program = {};

  beforeAll(async () => {
    await fleet.enrollMany(DEVICES);
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
  afterAll(() => harness.close());

  it(`${KEYS} keys are read in pages`, { timeout: 60_000 }, async () => {
    const requests = await requestsDuring(fleet.service, async () => {
      expect(await harness.refresh()).toEqual([]);
    });
    expect(requests.length).toBeLessThanOrEqual(KEYS / 100 + 5);
  });

  it("an inventory sends no request for a namespace that was already read", async () => {
    const connection = new Connection(fleet.client);
    await readNamespace(connection, fleet.tenant);
    const requests = await requestsDuring(fleet.service, async () => {
      const { objects } = await inventoryOf(
        connection,
        fleet.tenant,
        kindsWith("watched").map(({ definition }) => definition),
      );
      expect(objects).not.toEqual([]);
    });
    expect(requests).toEqual([]);
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

  it(`${DEVICES} devices that send reports while the provider reads the list of devices never count as deleted`, {
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
