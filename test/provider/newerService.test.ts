import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type RecordedService, startRecordedService } from "../support/recordedService.ts";
import { Harness, type Program } from "./support/harness.ts";

// Exchanges recorded with a 0.27: what the provider makes of a service that does not do what it is made for.

const TENANT = "a7d30b2c-5fdf-4149-adc1-afc58e37821b";
const ALICE = "6a6677b5-8e82-457c-8056-7c0162205a84";
const UID = "04723dc1d31d360ac07daed87c41b747c977a499f99ad13fd227fe5abfe62ecc";

let service: RecordedService;
let harness: Harness;
let said: string[];
beforeEach(() => {
  said = [];
  vi.spyOn(console, "log").mockImplementation((text: string) => said.push(text));
});
afterEach(async () => {
  vi.restoreAllMocks();
  await harness.close();
  await service.stop();
});

/** A service that answers with these exchanges, to somebody who logs in. */
async function start(...labels: string[]): Promise<void> {
  service = await startRecordedService(["login", "token of the namespace", ...labels]);
  harness = new Harness({
    GATEHOUSE_URL: service.url,
    GATEHOUSE_USERNAME: "admin",
    GATEHOUSE_PASSWORD: "password123",
    GATEHOUSE_TENANT: TENANT,
  });
}
const writes = () => service.requests.filter((request) => !/^GET |^POST \/api\/(login|auth)/.test(request));

const alice = (args: object = {}): Program => ({
  alice: { type: "Member", args: { email: "alice@example.com", role: "observer", ...args } },
});
const onDevice = (type: string, args: object): Program => ({
  it: { type, args: { device: UID, ...args } },
});

describe("a Member", () => {
  it("is refused before anything is sent, with what to do instead", async () => {
    await start("info", "list namespaces", "get namespace with its members", "invite alice");
    await expect(harness.up(alice())).rejects.toThrow(
      /Member\.email: the service is 0\.27, which invites members .* nothing was sent; invite alice@example\.com .* adopt: true/,
    );
    expect(writes()).toEqual([]);
    expect(harness.state.size).toBe(0);
  });

  it("who accepted is taken over, stays, and has another role as declared", async () => {
    await start("info", "list namespaces", "get namespace with its members", "change alice's role");
    await harness.up(alice({ adopt: true }));
    expect(harness.state.get("alice")).toMatchObject({
      id: `${TENANT}/${ALICE}`,
      outputs: { role: "observer", status: "accepted", expiresAt: "" },
    });
    expect(await harness.refresh()).toEqual([]);
    expect(await harness.preview(alice())).toEqual([]);
    expect(await harness.up(alice({ role: "operator" }))).toEqual(["update alice"]);
    expect(writes()).toEqual([`PATCH /api/namespaces/${TENANT}/members/${ALICE}`]);
  });

  it("is named with what was left behind, where a service that does not say its version lists none", async () => {
    await start("get namespace with its members", "invite alice");
    await expect(harness.up(alice())).rejects.toThrow(
      /the service took alice@example\.com but does not list it .* invitation, which is left behind .* withdraw it/,
    );
  });
});

describe("what such a service has no more", () => {
  const EXPECTED = "the service is 0.27, this release knows 0.19: ";

  it.each([
    ["DeviceTags", { tags: ["edge"] }, "replace device tags", "tags are objects there"],
    ["DeviceTagAttachment", { tag: "edge" }, "add device tag", "tags are objects there"],
  ])("%s: fails with its own error, and with the reason beside it", async (type, args, label, reason) => {
    await start("info", "get device", label);
    await expect(harness.up(onDevice(type, args))).rejects.toThrow(/refused \(405\): Method Not Allowed/);
    expect(said).toEqual([expect.stringContaining(EXPECTED + reason)]);
    expect(harness.state.size).toBe(0);
  });

  it("a Namespace: is not made, and no setting of another is touched", async () => {
    await start("info", "create a namespace");
    const program: Program = {
      it: { type: "Namespace", args: { name: "second", settings: { sessionRecord: false } } },
    };
    await expect(harness.up(program)).rejects.toThrow(/refused \(405\)/);
    expect(said).toEqual([
      expect.stringContaining(`${EXPECTED}a community instance has one namespace there`),
    ]);
    expect(writes()).toEqual(["POST /api/namespaces"]);
  });

  it("says it once in a run, and asks once", async () => {
    await start("info", "list devices by an unknown field");
    const program: Program = Object.fromEntries(
      ["one", "two", "three"].map((device) => [device, { type: "Device", args: { device } }]),
    );
    const failure: unknown = await harness.up(program).catch((error: unknown) => error);
    expect((failure as AggregateError).errors).toHaveLength(3);
    expect(said).toEqual([
      expect.stringContaining(`${EXPECTED}devices are sorted and filtered by other fields`),
    ]);
    expect(service.requests.filter((request) => request === "GET /info")).toHaveLength(1);
  });

  it("says nothing where no service answers, or where it does not say what it is", async () => {
    await start("create a namespace");
    const program: Program = { it: { type: "Namespace", args: { name: "second" } } };
    await expect(harness.up(program)).rejects.toThrow(/refused \(405\)/);
    await service.stop();
    await expect(harness.up(program)).rejects.toThrow();
    expect(said).toEqual([]);
  });
});

describe("what such a service does otherwise", () => {
  it("tags of a device are objects: they are read by their names", async () => {
    await start("get device with tags");
    const tags = ["staging", "t4a", "t5a"];
    await harness.up(onDevice("DeviceTags", { tags, adopt: true }));
    expect(harness.state.get("it")?.outputs.tags).toEqual(tags);
    expect(await harness.refresh()).toEqual([]);
    expect(writes()).toEqual([]);
  });

  it("settings of a namespace are more: those that are declared are changed", async () => {
    await start("list namespaces", "edit settings");
    const settings = { sessionRecord: false, connectionAnnouncement: "hi" };
    const program: Program = {
      it: { type: "Namespace", args: { name: "dev2", settings, adopt: "overwrite" } },
    };
    await harness.up(program);
    expect(writes()).toEqual([`PUT /api/namespaces/${TENANT}`]);
    expect(harness.state.get("it")?.outputs.settings).toEqual(settings);
    expect(await harness.preview(program)).toEqual([]);
  });

  it("name and status of a device are two requests: both are done", async () => {
    await start("get device", "rename device", "accept device");
    await harness.up(onDevice("Device", { name: "renamed1b", status: "accepted" }));
    expect(writes()).toEqual([`PUT /api/devices/${UID}`, `PATCH /api/devices/${UID}/accept`]);
    expect(harness.state.get("it")?.outputs).toMatchObject({ name: "renamed1b", status: "accepted" });
  });

  it.each([
    {
      name: "k3",
      data: "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBJSpnoBfoS+AKbX8X70HwcE8tD5Atf8qM+SJcEUEWEvN00/dWAXqbaxZ9E7gUiH53CEyT0DllZajJRGZyvddA2Q=",
      filter: { tags: ["prod", "staging"] },
      label: "create a key with tags",
    },
    {
      name: "k1",
      data: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIO880C61XtM+xPB6jEl8+yTMCM4JmaNCaemExyc+kTO6",
      filter: { hostname: ".*" },
      label: "create a key with a pattern",
    },
  ])("a key is read back as it was declared, for $filter", async ({ label, ...args }) => {
    await start(label, "list keys");
    const program: Program = { it: { type: "PublicKey", args: { ...args, username: ".*" } } };
    await harness.up(program);
    expect(await harness.refresh()).toEqual([]);
    expect(await harness.preview(program)).toEqual([]);
  });

  it("an API key is known again by who made it, and revoked", async () => {
    await start("create API key e60", "list API keys", "delete API key e60");
    await harness.up({ it: { type: "ApiKey", args: { name: "e60", validDays: 60 } } });
    expect(await harness.refresh()).toEqual([]);
    await harness.up({});
    expect(writes()).toEqual(["POST /api/namespaces/api-key", "DELETE /api/namespaces/api-key/e60"]);
  });
});
