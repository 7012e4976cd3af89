import { beforeAll, expect, it } from "vitest";
import { Connection } from "../../provider/service/connection.ts";
import { agentCall } from "../support/fleet.ts";
import { publicKey } from "../support/policy.ts";
import { sharedFleet } from "../support/sharedFleet.ts";
import { type Program, testHarness } from "./support/harness.ts";

const fleet = sharedFleet();
const harness = testHarness(() => fleet.env);
beforeAll(async () => {
  await fleet.enroll("web-01");
  await fleet.enroll("web-02");
});

const key = publicKey("k", "^root$", { tags: ["nowhere"] });
/** Enrolls a device with a key of its own. The device is pending at first. */
const enroll = (hostname: string, mac: string, publicKey: string) =>
  agentCall(fleet.client, hostname, mac, fleet.tenant, "v0.19.0", publicKey);

it("a filter with a tag that no device has is rejected after a wait, and the error contains the tag", {
  tags: ["long"],
  timeout: 60_000,
}, async () => {
  await expect(harness.up({ key })).rejects.toThrow(
    /filter\.tags: No object in the namespace \S+ has the tag nowhere/,
  );
});

it("the creation of a filter waits for tags that the same run adds", async () => {
  const connection = new Connection(fleet.client, { defaultTenant: fleet.tenant });
  const opened = await connection.tenant(undefined);
  const uid = (await fleet.client.getDevices({ query: { perPage: 1 } }))[0]?.uid ?? "";
  const data = Buffer.from(key.args.data).toString("base64");
  const body = { data, name: "k", username: ".*", filter: { tags: ["soon"] } };
  let sent = 0;
  const refused = Promise.withResolvers<unknown>();
  const creation = opened.tagWork.needing(["soon"], "PublicKey.filter.tags", async () => {
    sent += 1;
    try {
      return await fleet.client.createPublicKey({ body });
    } catch (error) {
      refused.resolve(error);
      throw error;
    }
  });
  expect(await refused.promise).toMatchObject({ status: 404 });
  // A change of another tag ends first. The creation of the key must continue to wait for its own tag.
  await opened.tagWork.during(async () => {});
  await opened.tagWork.during(() =>
    fleet.client.updateDeviceTags({ params: { uid }, body: { tags: ["soon"] } }),
  );
  const { fingerprint } = await creation;
  expect(sent).toBeGreaterThanOrEqual(2);
  await fleet.client.deletePublicKey({ params: { fingerprint } });
  await fleet.client.deleteDeviceTag({ params: { uid, tag: "soon" } });
});

it("DeviceTags without adopt are rejected if the device has other tags, and these tags stay", async () => {
  const uid = await fleet.enroll("web-03");
  await fleet.client.updateDeviceTags({ params: { uid }, body: { tags: ["mine"] } });
  const tags: Program = { tags: { type: "DeviceTags", args: { device: "web-03", tags: ["ours"] } } };
  await expect(harness.up(tags)).rejects.toThrow(/adopt: .*tags is \["mine"\], declared \["ours"\]/);
  expect((await fleet.client.getDevice({ params: { uid } })).tags).toEqual(["mine"]);
});

it("an attachment of a device with three tags can replace its tag", async () => {
  const attach = (tag: string) => ({ type: "DeviceTagAttachment", args: { device: "web-02", tag } });
  await harness.up({ a: attach("one"), b: attach("two"), c: attach("three") });
  expect(await harness.up({ a: attach("one"), b: attach("two"), c: attach("four") })).toEqual([
    "replace c tag",
  ]);
  const [device] = (await fleet.client.getDevices({ query: { perPage: 100 } })).filter(
    (one) => one.name === "web-02",
  );
  expect(device?.tags.sort()).toEqual(["four", "one", "two"]);
});

it("a device that enrolls again loses its tags, and up restores the tags by MAC address", async () => {
  const mac = "02:00:00:00:cc:01";
  const first = await fleet.enroll("edge-01", mac);
  const program: Program = {
    all: { type: "DeviceTags", args: { device: mac.toUpperCase().replaceAll(":", "-"), tags: ["edge"] } },
  };
  await harness.up(program);
  await fleet.client.deleteDevice({ params: { uid: first } });
  // The uid of a device depends on the device's key, so a new key results in a new uid.
  await enroll("edge-01", mac, "another key");
  const [again] = (await fleet.client.getDevices({ query: { perPage: 100 } })).filter(
    (device) => device.identity.mac === mac,
  );
  expect(again?.uid).not.toBe(first);
  expect(await harness.refresh()).toEqual(["update all"]);
  expect(await harness.preview(program)).toEqual(["update all"]);
  await harness.up(program);
  expect((await fleet.client.getDevice({ params: { uid: again?.uid ?? "" } })).tags).toEqual(["edge"]);
});

it("a pending device gets the declared status, and an accepted device is not rejected", async () => {
  const [one, two] = ["02:00:00:00:dd:01", "02:00:00:00:dd:02"] as const;
  for (const mac of [one, two]) await enroll(`host-${mac.slice(-2)}`, mac, "a key");
  const device = (mac: string, status: string): Program => ({
    d: { type: "Device", args: { device: mac, status } },
  });
  await harness.up(device(one, "accepted"));
  expect(harness.state.get("d")?.outputs.status).toBe("accepted");
  await expect(harness.up(device(one, "rejected"))).rejects.toThrow(/status: Cannot reject the device/);
  await harness.up({});
  await harness.up(device(two, "rejected"));
  expect(await harness.preview(device(two, "rejected"))).toEqual([]);
  await harness.up(device(two, "accepted"));
  expect(await harness.preview(device(two, "accepted"))).toEqual([]);
});
