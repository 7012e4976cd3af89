import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { firewallRule } from "../support/policy.ts";
import { sharedFleet } from "../support/sharedFleet.ts";
import { testHarness } from "./support/harness.ts";

const fleet = sharedFleet();
const harness = testHarness(() => fleet.env);
let count = 0;
let name: string;
let uid: string;
beforeEach(async () => {
  count += 1;
  name = `gate-${count}`;
  uid = await fleet.enroll(name);
});

const tagsOf = async (device: string) => (await fleet.client.getDevice({ params: { uid: device } })).tags;
const rename = (to: string) => fleet.client.updateDevice({ params: { uid }, body: { name: to } });

describe.each([
  { type: "DeviceTags", args: { tags: ["prod"] } },
  { type: "DeviceTagAttachment", args: { tag: "prod" } },
  { type: "Device", args: {} },
])("$type with a device selected by name", ({ type, args }) => {
  const program = (device = name) => ({ it: { type, args: { device, ...args } } });

  it("moves to the device that has the declared name after a refresh", async () => {
    await harness.up(program());
    await rename(`${name}-old`);
    const other = await fleet.enroll(name);
    expect(await harness.refresh()).toEqual(["update it"]);
    expect(await harness.preview(program())).toEqual(["replace it device"]);
    await harness.up(program());
    expect(harness.state.get("it")?.outputs.uid).toBe(other);
    if (type !== "Device") expect([await tagsOf(uid), await tagsOf(other)]).toEqual([[], ["prod"]]);
    expect(await harness.refresh()).toEqual([]);
    expect(await harness.preview(program())).toEqual([]);
  });

  it("stays with a renamed device if no accepted device has the old name", async () => {
    await harness.up(program());
    await rename(`${name}-new`);
    expect(await harness.refresh()).toEqual(["update it"]);
    expect(await harness.preview(program())).toEqual([]);
    const pending = await fleet.enrollPending(name);
    expect(await harness.refresh()).toEqual([]);
    expect(await harness.preview(program())).toEqual([]);
    await fleet.client.deleteDevice({ params: { uid: pending } });
  });

  it("stays with a renamed device if the program uses the new name", async () => {
    await harness.up(program());
    await rename(`${name}-new`);
    await harness.refresh();
    expect(await harness.up(program(`${name}-new`))).toEqual([]);
    expect(harness.state.get("it")?.outputs.uid).toBe(uid);
  });
});

describe.each([
  { type: "DeviceTags", args: { tags: ["prod"] } },
  { type: "DeviceTagAttachment", args: { tag: "prod" } },
])("$type after a Device of the same run", ({ type, args }) => {
  const macOf = async (device: string) =>
    (await fleet.client.getDevice({ params: { uid: device } })).identity.mac.toLowerCase();
  const seen = () => {
    const { deviceName, deviceStatus } = harness.state.get("tags")?.outputs ?? {};
    return [deviceName, deviceStatus];
  };

  it.each(["mac", "name"] as const)(
    "stores the new name and the status of a device that a %s selects",
    async (kind) => {
      const pending = await fleet.enrollPending(`${name}-new`);
      const selector = kind === "mac" ? await macOf(pending) : `${name}-new`;
      const program = {
        device: { type: "Device", args: { device: selector, name: `${name}-edge`, status: "accepted" } },
        tags: { type, args: { device: selector, ...args } },
      };
      const log = vi.spyOn(console, "log").mockImplementation(() => {});
      onTestFinished(() => log.mockRestore());
      await harness.up(program);
      expect(seen()).toEqual([`${name}-edge`, "accepted"]);
      expect(log.mock.calls.flat().filter((line) => /not accepted/.test(String(line)))).toEqual([]);
      expect(await harness.refresh()).toEqual([]);
      expect(await harness.preview(program)).toEqual([]);
    },
  );

  it("stores the name after an update of the Device, or after a refresh if its own inputs did not change", async () => {
    const program = (to: string, more = {}) => {
      const device = { type: "Device", args: { device: uid, name: to } };
      return { device, ...more };
    };
    const tags = { tags: { type, args: { device: uid, ...args } } };
    await harness.up(program(`${name}-one`));
    await harness.up(program(`${name}-two`, tags));
    expect(seen()).toEqual([`${name}-two`, "accepted"]);
    await harness.up(program(`${name}-three`, tags));
    await harness.refresh();
    expect(seen()).toEqual([`${name}-three`, "accepted"]);
    expect(await harness.preview(program(`${name}-three`, tags))).toEqual([]);
  });
});

it("an update of an object that was deleted out of band reports how to create the object again", async () => {
  await harness.up({ rule: firewallRule("deny", 1) });
  const id = String(harness.state.get("rule")?.outputs.ruleId);
  await fleet.client.deleteFirewallRule({ params: { id } });
  await expect(harness.up({ rule: firewallRule("deny", 2) })).rejects.toThrow(
    /The object .* no longer exists.*Run (with --refresh|terraform plan again)/,
  );
  await harness.refresh();
  expect(await harness.up({ rule: firewallRule("deny", 2) })).toEqual(["create rule"]);
});
